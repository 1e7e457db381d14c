"""Lesson 15: the playwright reads a text; and a step of learning from a reward."""

from itertools import product
from math import exp, fsum, log

import pytest
import torch
import torch.nn.functional as F
from small import DATA, seeded, small_gpt, weights_of
from torch.testing import assert_close

from minigpt.bigram import BigramLanguageModel
from minigpt.data import CharTokenizer
from minigpt.playwright.lexicon import LEXICON
from minigpt.playwright.play import POCKET, write_play
from minigpt.reward import measuring
from minigpt.reward.checker import RULES, Checker
from minigpt.reward.measuring import coins, entrances, held_out, judged_by
from minigpt.reward.step import advantages, log_probs, reward_loss, reward_step
from minigpt.stored import load_stored

SCENE = """Chorus:
A bog. Enter Ghost, Nan and Hob.
I'll sell your hat,
And drown your damp rat.

Hob:
Hear me, Nan: you have kiss'd the queen's ham!

Nan:
Who kiss'd the queen's ham? Not I! 'Twas thy damp pig!
May pigs drown a ring,
And sell thy fat king.

"""


@pytest.fixture(scope="module")
def checker():
    return Checker()


# --- The checker. ---


@pytest.mark.parametrize("lexicon", [POCKET, LEXICON], ids=["pocket", "whole"])
def test_what_the_playwright_wrote_he_reads_with_the_same_surprise(lexicon):
    play = write_play(12_000, seed=5, lexicon=lexicon)
    verdict = Checker(lexicon).check(play.text)
    assert verdict.broken == "" and len(verdict.surprise) == 12_000
    assert verdict.surprise == play.surprise  # the same logarithms


@pytest.mark.parametrize(
    ("old", "new", "rule", "read"),
    [
        ("sell your hat", "sell our hat", "wording", "I'll sell "),
        ("Hear me, Nan: you", "Hear me, Nan; you", "wording", "Hear me, "),
        ("your damp rat", "thy damp rat", "agreement", "And drown "),
        ("damp rat", "damp king", "rhyme", "your damp "),
        ("damp rat", "damp hat", "rhyme", "your damp "),  # the same word again
        ("\n\nHob:", "\n\nSir Loin:", "on stage", "damp rat.\n\n"),
        ("me, Nan", "me, Sir Loin", "on stage", "Hear me, "),
        ("me, Nan", "me, Hob", "on stage", "Hear me, "),  # he names himself
        ("Nan and Hob", "Nan and Nan", "on stage", "Ghost, Nan and "),
        ("Nan:\nWho", "Ghost:\nWho", "answer", "queen's ham!\n\n"),
        ("Who kiss'd", "Who drown'd", "repeat", "Who "),
        ("ham? Not", "boot? Not", "repeat", "Who "),  # the place of the whole phrase
        ("Who kiss'd the queen's ham? Not I! '", "A ", "wording", "Nan:\n"),
        ("pig!\nMay", "pig!\nI may", "wording", "damp pig!\n"),
    ],
)
def test_the_first_broken_rule_has_a_name_and_a_place(checker, old, new, rule, read):
    assert checker.check(SCENE).broken == ""
    text = SCENE.replace(old, new, 1)
    assert text != SCENE
    verdict = checker.check(text)
    assert verdict.broken == rule and rule in RULES
    assert text[: len(verdict.surprise)].endswith(read)


def test_only_the_first_broken_rule_counts(checker):
    text = SCENE.replace("damp rat", "damp king").replace("Nan:\nWho", "Hob:\nWho")
    assert checker.check(text).broken == "rhyme"


def test_a_text_may_end_anywhere(checker):
    whole = checker.check(SCENE).surprise
    for end in range(1, len(SCENE)):
        verdict = checker.check(SCENE[:end])
        assert verdict.broken == "" and verdict.surprise == whole[:end]


def test_probabilities_of_all_that_may_follow_sum_to_one(checker):
    chars = sorted(set(write_play(20_000, lexicon=POCKET).text))
    for end in range(8, len(SCENE), 7):
        start = SCENE[:end]
        verdicts = [checker.check(start + char) for char in chars]
        p = [exp(-v.surprise[-1]) for v in verdicts if not v.broken]
        assert fsum(p) == pytest.approx(1)


# --- Prompts, judges and the price. ---


def test_each_cast_is_held_out_in_one_turn_of_three_at_most():
    scenes = entrances(write_play(60_000, lexicon=POCKET).text)
    casts = {cast for _, cast in scenes}
    assert len(casts) == 10
    out = [{cast for cast in casts if held_out(cast, turn)} for turn in range(3)]
    assert [len(three) for three in out] == [3, 3, 3]
    assert len(set.union(*out)) == 9
    for three in out:  # everybody is in two casts or more that are trained
        assert all(sum(n in c for c in casts - three) >= 2 for n in POCKET.names)


def test_a_prompt_ends_with_who_enters():
    play = write_play(20_000, lexicon=POCKET)
    for prompt, cast in entrances(play.text, after=10):
        assert len(prompt) == measuring.BEFORE + 10 and prompt in play.text
        line = prompt[: measuring.BEFORE].rpartition("Enter ")[2]
        assert line.endswith(".\n") and all(name in line for name in cast)
        assert measuring.scene(prompt).startswith("Chorus:\n")


def test_a_judge_reads_the_scene_alone():
    prompt = entrances(SCENE * 2)[-1][0]
    tokenizer, seen = CharTokenizer(SCENE), []
    rewards = judged_by(tokenizer, lambda text: seen.append(text) or len(text))
    ids = torch.tensor([tokenizer.encode(prompt + "I'll")])
    assert rewards(ids).tolist() == [len(seen[0])]
    assert seen == [SCENE[: SCENE.index(".\n", 10) + 2] + "I'll"]


def test_no_way_to_a_share_is_cheaper_than_two_coins():
    p = torch.tensor([0.1, 0.3, 0.2, 0.4])  # texts, the first two of which are kept
    for seed in range(50):
        q = torch.randn(4, generator=seeded(seed)).mul(2).softmax(dim=0)
        kl = (q * (q / p).log()).sum().item()
        assert kl >= coins(q[:2].sum().item(), 0.4) - 1e-6
    kept, lost = p * torch.tensor([0.8 / 0.4] * 2 + [0, 0]), p[2:] * 0.2 / 0.6
    q = kept + F.pad(lost, (2, 0))  # raised and lowered alike: as cheap as can be
    assert (q * (q / p).log()).sum().item() == pytest.approx(coins(0.8, 0.4))
    assert coins(1.0, 0.4) == pytest.approx(-log(0.4))


def test_a_model_that_is_its_own_reference_has_moved_by_nothing():
    model, tokenizer = load_stored("pocket-1337")
    scenes = entrances(write_play(3_000, seed=3, lexicon=POCKET).text)[:4]
    prompts = torch.tensor([tokenizer.encode(prompt) for prompt, _ in scenes])
    found = measuring.price(model, model, tokenizer, prompts, seeded())
    assert found["KL"] == 0 and found["entropy"] > 5
    shares = [found["kept"], *(found[f"breaks {rule}"] for rule in RULES)]
    assert fsum(shares) == pytest.approx(1) and found["differ"] == 1
    assert fsum(found[f"{name} first"] for name in POCKET.names) <= 1


# --- The step. ---

DIE = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)  # logits of three sides
REWARD = torch.tensor([0.0, 1.0, 4.0], dtype=torch.float64)


def die_gradient(leash):
    """Of the mean reward minus leash * KL, by torch, from the exact formula."""
    logits = DIE.clone().requires_grad_()
    p, q = logits.softmax(dim=0), torch.full((3,), 1 / 3, dtype=torch.float64)
    goal = (p * REWARD).sum() - leash * (p * (p / q).log()).sum()
    return torch.autograd.grad(goal, logits)[0]


def expected_step(leash, n, advantages=advantages):
    """The gradient of -reward_loss, over all that a group of n rolls may be."""
    total, p = torch.zeros(3, dtype=torch.float64), DIE.softmax(dim=0)
    ref = torch.full((n, 1, 3), 1 / 3, dtype=torch.float64).log()
    for rolls in product(range(3), repeat=n):
        logits = DIE.clone().requires_grad_()
        logp = logits.log_softmax(dim=0).expand(n, 1, 3)
        better = advantages(REWARD[list(rolls)][None]).flatten()
        loss = reward_loss(logp, ref, torch.tensor(rolls)[:, None], better, leash)
        chance = p[list(rolls)].prod()
        total -= chance * torch.autograd.grad(loss, logits)[0]
    return total


@pytest.mark.parametrize("leash", [0.0, 0.3])
def test_without_a_baseline_a_step_follows_the_exact_gradient(leash):
    step = expected_step(leash, 3, lambda rewards: rewards)
    assert_close(step, die_gradient(leash))


@pytest.mark.parametrize("n", [2, 4])
def test_a_mean_with_the_text_itself_in_it_shortens_the_step(n):
    """Each text is compared with itself, too: so 1 - 1/n of the gradient is left."""
    assert_close(expected_step(0, n), (1 - 1 / n) * die_gradient(0))


def test_advantages_do_not_see_what_all_texts_of_a_group_get():
    rewards = torch.tensor([[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    moved = advantages(rewards + torch.tensor([[10.0], [-3.0]]))
    assert_close(moved, advantages(rewards))
    assert moved.sum(dim=1).abs().max() < 1e-6 and moved[1].abs().max() == 0


def test_the_leash_pulls_back_to_the_reference_and_is_exact():
    ref = torch.tensor([0.5, 0.25, 0.25]).log().expand(2, 4, 3)
    logp = torch.tensor([0.25, 0.5, 0.25]).log().expand(2, 4, 3)
    chosen, nothing = torch.zeros(2, 4, dtype=torch.long), torch.zeros(2)
    loss = reward_loss(logp, ref, chosen, nothing, leash=0.5)
    assert loss.item() == pytest.approx(0.5 * 4 * 0.25 * log(2))
    assert reward_loss(ref, ref, chosen, nothing, leash=0.5) == 0


def test_the_leash_does_not_see_where_an_early_character_leads():
    """Texts of two characters, where the models differ only after a 0. The KL of texts
    falls if 0 gets rarer, but the leash's gradient leaves the first character alone."""
    first = torch.tensor([0.3, -0.2], requires_grad=True)
    second = torch.tensor([[1.0, 0.0], [0.0, 0.0]])  # row: the first character
    logp, then = first.log_softmax(dim=0), second.log_softmax(dim=1)
    ref = torch.full((2, 2), 0.5).log()
    kl = (then.exp() * (then - ref)).sum(dim=1)  # after each first character
    start = first.detach().log_softmax(dim=0)
    whole = (logp.exp() * (logp - start + kl)).sum()
    assert torch.autograd.grad(whole, first, retain_graph=True)[0][0] > 0.02
    expected = torch.zeros(2)
    for x, y in product(range(2), repeat=2):
        places = torch.stack([logp, then[x]])[None]  # (1, 2, V)
        same = torch.stack([start, ref[x]])[None]
        loss = reward_loss(places, same, torch.tensor([[x, y]]), torch.zeros(1), 1.0)
        slope = torch.autograd.grad(loss, first, retain_graph=True)[0]
        expected += (start[x] + then[x, y]).exp() * slope
    assert_close(expected, torch.zeros(2))


def test_the_prompt_gets_no_reward():
    """Whatever a model says of the prompt's own characters, the loss stays the same."""
    model, idx = small_gpt(), DATA[:8][None]
    logp = log_probs(model, idx, 3)
    assert logp.shape == (1, 3, model.lm_head.out_features)
    assert_close(logp.exp().sum(dim=-1), torch.ones(1, 3))
    assert_close(logp, model(idx)[0][:, 4:7].log_softmax(dim=-1))


def test_a_model_learns_to_write_what_a_judge_wants():
    torch.manual_seed(0)
    model, reference = BigramLanguageModel(5), BigramLanguageModel(5)
    for m in (model, reference):
        m.token_embedding.weight.data.zero_()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.2)
    dice, prompts = seeded(), torch.zeros(4, 1, dtype=torch.long)
    to = dict(n=8, new=3, leash=0.0, generator=dice)
    fours = lambda idx: (idx[:, 1:] == 4).float().mean(dim=1)  # noqa: E731
    steps = [
        reward_step(model, reference, optimizer, prompts, fours, **to)
        for _ in range(40)
    ]
    assert steps[0].shape == (4, 8) and steps[0].mean() < 0.4
    assert steps[-1].mean() > 0.9
    assert weights_of(reference).abs().max() == 0


def test_a_group_of_equals_teaches_nothing():
    model, reference = BigramLanguageModel(5), BigramLanguageModel(5)
    reference.load_state_dict(model.state_dict())
    optimizer, before = torch.optim.SGD(model.parameters(), lr=1.0), weights_of(model)
    prompts = torch.zeros(2, 1, dtype=torch.long)
    reward_step(
        model, reference, optimizer, prompts, lambda i: torch.ones(len(i)), 4, 3
    )
    assert_close(weights_of(model), before)
