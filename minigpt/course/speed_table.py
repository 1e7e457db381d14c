"""The speed run's table, read from the record; the entries themselves are in
`minigpt.course.experiments.speedrun_entries`."""

from minigpt.course import record
from minigpt.tools import speedrun

NEW = ["counts alone", "GPT alone"]  # the others change the entry above them


def speed_table() -> str:
    """The record as lines of text, for print(): what each entry took of the 60
    seconds, and what it gains."""
    above = None
    lines = [f"{'':28}{'loss':>5}{'spread':>8}{'of 60':>9}{'steps':>7}  gain"]
    for name, v in record.load("speedrun").items():
        seconds = max(
            speedrun.SECONDS
            * run["seconds"]
            / speedrun.limit(run["demo steps per second"])
            for run in v.runs.values()
        )
        gain = record.difference(above, v) if above and name not in NEW else ""
        line = f"{name:28}{v.mean():5.3f}{v.spread():8.3f}{seconds:9.1f}"
        lines.append(f"{line}{v.values('steps')[0]:7,}  {gain}".rstrip())
        above = v
    return "\n".join(lines)
