"""What's wrong with a GPT: examines any model that turns ids into logits.

    from minigpt.clinic import examine
    print(examine(model, vocab_size))

or `python -m minigpt clinic their_model.py`. The order of the visit: patient (the
door), listening (who hears whom), learning (gradients, one batch by heart), text
(losses). lines finds where in the code a symptom first shows; report is the page.
"""

from minigpt.clinic.examination import examine
from minigpt.clinic.report import Finding, Report

__all__ = ["Finding", "Report", "examine"]
