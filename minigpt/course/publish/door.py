"""What the README knows from elsewhere: minutes, exercises, and where all is published.

    python -m minigpt.course.publish.door                      writes README.md anew
    python -m minigpt.course.publish.door --repo owner/name    once it is published

A place in the README is marked by <!-- name … --> and <!-- end -->. The repository
stands in pyproject.toml; while it is empty, no link leads to what is not there.
"""

import argparse
import re

from minigpt.course.publish import colab, shared

README = shared.ROOT / "README.md"
SETTING = shared.ROOT / "pyproject.toml"
TITLE = re.compile(r"^### (Exercise|Bug hunt) (\d\d\.\d+): (.*)\n+(★+) · (.*)", re.M)
ROW = re.compile(
    r"^(\| \[.*?\]\(notebooks/(\w+)\.ipynb\) \|.*?\| )([\d–]+)( min \|(?: [^|]* \|)?)$",
    re.M,
)
LINKS = """[![tests]({tests}/badge.svg)]({tests})

**[Try the model]({site}model.html)** · [Read online]({site}) · [Open in Colab]({colab})
· [Ask a question](https://github.com/{repo}/discussions)"""


def written(text: str, repo: str | None = "") -> str:
    """The README with its marked places filled in."""
    paths = {path.stem: path for path in shared.notebook_paths()}
    spent = {name: shared.range_of(path) for name, path in paths.items()}
    text = ROW.sub(lambda row: f"{row[1]}{spent[row[2]]}{row[4]}", text)
    main = [spent[name].split("–") for name in paths if re.match(r"0[0-6]_", name)]
    fewest, most = (hours(sum(map(int, ends))) for ends in zip(*main))
    said = f"{fewest} if you know torch, {most} if it is new to you"
    text = fill(text, "hours", said)
    text = fill(text, "practice", hours(sum(practice())))
    text = fill(text, "exercises", "\n" + exercises() + "\n")
    return fill(text, "links", "\n" + (links(repo) + "\n" if repo else ""))


def fill(text: str, name: str, inside: str) -> str:
    """A text with something else between the marks of a place."""
    place = re.compile(rf"(<!-- {name}\b[^>]*-->).*?(<!-- end -->)", re.S)
    if not place.search(text):
        raise ValueError(f"README.md has no place <!-- {name} --> … <!-- end -->.")
    return place.sub(lambda found: found[1] + inside + found[2], text)


def hours(total: int) -> str:
    """Minutes as a reader says them: "4 hours", "4½ hours"."""
    halves = -(-total // 30)
    half = "½" if halves % 2 else ""
    return f"{halves // 2}{half} hours"


def practice() -> list[int]:
    """Minutes of each exercise of the main line, without trainings."""
    told = [
        time
        for path in shared.notebook_paths(shelf="exercises")
        if re.match(r"0[0-6]_", path.name)
        for *_, time in TITLE.findall(shared.markdown(shared.read(path)))
    ]
    return [int(time.split()[0]) for time in told]


def exercises() -> str:
    """A table of all exercises: lesson, name, stars, minutes."""
    rows = ["| lesson | exercise | | |", "|---|---|---|---|"]
    for path in shared.notebook_paths(shelf="exercises"):
        where = f"notebooks/exercises/{path.name}"
        for kind, number, name, stars, time in TITLE.findall(
            shared.markdown(shared.read(path))
        ):
            hunt = " (bug hunt)" if kind == "Bug hunt" else ""
            rows.append(f"| {number} | [{name}]({where}){hunt} | {stars} | {time} |")
    return "\n".join(rows)


def links(repo: str) -> str:
    """The badge and the links of a published course."""
    return LINKS.format(
        repo=repo,
        tests=f"https://github.com/{repo}/actions/workflows/tests.yml",
        site=shared.site(repo),
        colab=colab.address(repo, shared.notebook_paths()[0].name),
    )


def main() -> None:
    """Write the setting, if one is given, and the README."""
    parser = argparse.ArgumentParser(description="Write what the README knows.")
    parser.add_argument("--repo", help="owner/name on GitHub; kept in pyproject.toml")
    repo = parser.parse_args().repo
    if repo is not None:
        text = SETTING.read_text(encoding="utf-8")
        setting = f'repository = "{shared.checked(repo)}"'
        shared.write(SETTING, re.sub(r'^repository = ".*"', setting, text, flags=re.M))
    refresh()


def refresh() -> None:
    """Write the README anew."""
    text = README.read_text(encoding="utf-8")
    shared.write(README, written(text, shared.repository()))


if __name__ == "__main__":
    main()
