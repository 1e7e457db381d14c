"""All that the clinic says, in the order of the visit, and which follows from which.

A line begins with a mark and a name; what stands before the name's first dot is the
finding's key. Sentences with the mark · are parts of others. {…} is filled in.
"""

import re
from typing import Any

TEXT = """
✗ door.refused: It doesn't take a batch of ids (3, {T}): {problem}. If it wants to be
  called another way, say call=lambda m, ids: …
✗ door.shape: Ids of shape (3, {T}) go in, so logits (3, {T}, {V}) should come out. I
  got {got}
· got.nothing: no tensor of numbers at all. Return the logits.
· got.transposed: {shape}: there is one transpose too many at the end.
· got.time: {shape}: time comes first. Use batch_first, or transpose(0, 1).
· got.last: {shape}: the last position alone. You can write with that, but training
  needs an answer at every position: don't cut the logits to [:, -1].
· got.width: {shape}: the last layer gives {width} numbers, the vocabulary has {V}.
  Either lm_head has the wrong width, or the vocab_size you told me is wrong.
· got.other: {shape}: If the logits are hidden in there, say call=lambda m, ids: …
✗ length: Its own limit is {told} ids, but it breaks at more than {longest}: {problem}.
  Is a mask or a position table too small?
✗ one: With a single id it breaks: {problem}. You can't write from one letter that way.
  Did a squeeze() remove the time axis?
✓ beyond.reads: It reads more than {T} ids, too, although that's its limit.
✓ beyond.stops: It reads up to {T} ids. Beyond that it stops with "{problem}", so cut
  the text before you ask: ids[:, -{T}:].
✗ broke: The visit broke off here: {problem}.

✗ nan: It answers {kind} in {mode}, at {n} of {T} positions. {begins} {hint}
· nan.sum: Look for a division by 0, a log or a root of something negative.
· nan.grows: The numbers overflow there: something grows from position to position.
· nan.diagonal: The first position sees nobody there, not even itself, so its softmax
  has nothing to share: the mask hides the diagonal. With tril keep diagonal=0, with
  triu say diagonal=1.
· nan.nobody: A softmax over nothing but -inf is nan: some position sees nobody. Look at
  the mask. Is it the wrong way around?
✗ axis: The answers sum to 1 over {over}: there's a softmax at the end, and over the
  wrong axis. Return the logits. {line}
✗ probabilities: These are probabilities: each row sums to 1. cross_entropy wants logits
  and takes the softmax itself. Leave the softmax out of forward; with it, the model can
  hardly learn. {line}
? logs: These are log-probabilities, not logits. cross_entropy takes them as well: no
  harm, but its own log_softmax changes nothing then.
✗ range.relu: No logit is ever below 0: a relu comes after the last layer. Take it out.
  {line}
✗ range.bounded: Whatever the weights are, all logits stay between {low} and {high}: a
  {name} comes after the last layer. It can never be sure of anything. {line}

✗ state: It remembers: after another text, the same ids get a different answer.
  {problem}
  Something is kept from call to call, such as a cache, a hidden state or a mask that is
  changed in place. Clear it at the start of forward.
· state.breaks: The next call even breaks: {problem}.
✗ luck: Two evaluations of the same ids differ: it rolls dice in eval(). {begins} {hint}
✓ luck.none: The same ids get the same answer, whatever was asked before.
✗? drops: Dropout {p:.0%} in {name}: p is the share that's thrown away, not the share
  that's kept.
✗ alike: There is dropout ({name}, {n} in all), but train() answers like eval(): it is
  never called, or it's called with training=False.

✓ loss.right: The loss it returns is the cross-entropy of its logits.
? loss.shifts: The loss it returns shifts the targets itself (transformers' models do).
  So give it the ids themselves as labels; don't shift them before.
✗? loss.wrong: The loss it returns, {loss:.3f}, isn't the cross-entropy of its logits
  with the targets, {right:.3f}. {like}.
✗ targets: The logits change with the targets: the model sees what it should predict.
  Use the targets for the loss alone.

✗ neighbors.talk: The rows of a batch talk to each other, {only}so what one text gets
  depends on the texts beside it. {begins} {hint}
✗ neighbors.counts: The same text gets a different answer in another row of the batch.
  Something counts the rows where it should count positions: torch.arange(B) for
  torch.arange(T), or an axis that was swapped. {line}
✓ neighbors.none: The rows of a batch don't hear each other.

✗ future: It hears the future{only}: position {t} hears id {s}; up to {ahead} ahead. A
  change there moves the logits by up to {size:.2g} of the largest one. A loss you get
  this way is too good, and worth nothing. {begins} {hint}
✓ future.none: Nobody hears the future, in windows of {T} and in both modes.
· leak.upside: And it doesn't hear the past: the mask is upside down (triu for tril, or
  == 0 where == 1 was meant).
· leak.cut: So the mask is right for a full window and wrong for a part of it: cut it to
  mask[:T, :T].
· leak.shifted: Only the next {n}: the mask is off by one somewhere (diagonal=1 in tril,
  diagonal=2 in triu; each layer adds one).
· leak.maskless: That's how it looks when there is no mask, or one that comes too late
  (after the softmax) or isn't -inf.

· begins: It shows first in {line}.
· hint.softmax: That softmax runs over dim={dim}. The weights of one position must sum
  to 1 over those it listens to: dim=-1.
· hint.view: A {name}() only counts numbers off in order; it can't swap axes, so here it
  mixes {what}. Split the last axis first, (B, T, heads, size), then transpose.
· hint.batchnorm: BatchNorm averages over the rows and over time. Use LayerNorm, which
  looks at one position at a time.
· hint.roll: {name}() moves {what} there.
· hint.average: {name}() runs over {what} there{axis}. A norm looks at one position
  alone: dim=-1, the channels.
· hint.rows: Attention treats the rows as positions: say batch_first=True, or check
  which axis is time.
· hint.maskless: It was given no mask: say is_causal=True, or pass attn_mask.
· hint.rnn: Say {argument}.
· hint.conv: A convolution pads on both sides. Pad on the left only.
· hint.sdpa: scaled_dot_product_attention drops out whenever it's told to: say
  dropout_p=self.dropout if self.training else 0.0.
· hint.dropout: This dropout doesn't know about eval(): use nn.Dropout (registered in
  the module), or F.dropout(x, p, training=self.training).

✗ cut: No gradient comes back from the logits: there is a no_grad(), a detach(), an
  argmax or an .item() on the way.
? frozen.all: All weights are frozen (requires_grad is False): nothing can learn.
? frozen.nothing: It has no parameters at all, so nothing can learn.
? frozen.some: {n} tensors are frozen, among them {name}.
✗ unregistered: {n:,} numbers want to learn, but model.parameters() doesn't have them,
  so no optimizer will ever change them. They're in {holder}.
✓ unregistered.none: Everything that learns is in parameters().

✗ past.deaf: It doesn't listen at all: whatever the ids are, the answer is the same. Is
  the token embedding fed something other than the ids?
✗ own: A position doesn't hear its own id: change the newest one, id {last}, and the
  answer at position {last} stays. The mask hides the diagonal, or the inputs were
  shifted once more inside.
✗ past.wasted: It hears the last id alone, nothing before it. Yet there is {name}, which
  should listen. Either its mask hides everybody else (eye instead of tril, masked the
  wrong way around), or its result is thrown away.
? past.bigram: It hears the last id alone, nothing before it. A bigram is like that. If
  it's more than one, its context gets lost.
? reach.short: The last position hears {reach} ids back, out of {last}. With a sliding
  window, a convolution or a forgetful RNN that's as it should be.
? reach.silent: No later position hears id {s}. Look at the mask.
✓ past.whole: The whole past is heard: position {last} hears id 0.
✓ order.counts: The order of the ids counts.
? order.rotary: One letter repeated gets the same answer at every position. With rotary
  positions or ALiBi it should. If you have a table of positions, you forgot to add it:
  x = tok_emb + pos_emb.
✗? order.lost: The order of the past doesn't count: swap two earlier ids, and the answer
  stays. Nothing tells it about positions. Is the position embedding added?
✗ order.idle: {name} is there, and yet the first block doesn't know the order: swap two
  earlier ids, and what it says stays. Is the rotation applied along time, to queries
  and keys, and is its result kept?
✗ order.one: {name} is asked for row {row} at every position, so it says the same
  everywhere. Give it torch.arange(T).
✗ order.ids: {name} is asked for something that changes with the ids, so it's a second
  token embedding and knows no positions. Give it torch.arange(T).
✗ order.unturned: Nothing tells it about positions: {name} is made and never used. Is
  the rotation applied to queries and keys?
✓ through.there: Each part of a block has a way around it: the residual path is there.
✗? through.cut: No way leads around {names}: switch it off, and the answer is the same
  whatever the ids are. The residual path is missing there: x = x + self.{last}(…), not
  x = self.{last}(…). It's the same in every block.

✗ unused.cut: {names}: used, but no gradient comes back. After it there is a detach(), a
  no_grad(), or a result that is computed and then thrown away.
✗ unused.positions: {names}: looked up, and then not used. Add the positions: x =
  tok_emb + pos_emb.
✗ unused.never: {names}: never used. It's made in __init__, but forward doesn't call it.
? unused.small: {names}: never used.
✗ unused.rows: {name}: rows {start} to {end} of {n} get no gradient, so that part of the
  result is never used. If it makes queries, keys and values at once, one of the three
  is left out; perhaps another is taken twice.
✗ gradient.zero: {names}: used, but its gradient is exactly 0, so it never learns. Look
  after it for a detach(), a no_grad(), a multiplication by 0, a softmax over an axis
  of size 1, or a mask that leaves nothing to choose.
✗ empty: Every matrix is 0, so every gradient is, too, and nothing can learn. Start with
  small random numbers.
✓ gradient.all: A gradient reaches every matrix.
✗ relu: {dead:.0%} of the relu's outputs are 0 whatever it reads: {line}. What is dead
  gets no gradient. Look at the scale and the bias of the layer before.
· first: On random ids its first loss is {loss:.2f}; knowing nothing is ln {V} =
  {even:.2f}.
✗ first.large: {first} It begins with strong opinions, and they're wrong: its weights
  are too large at the start. Embeddings of standard deviation 1 that lm_head shares, a
  scale that's missing, or a lost norm before lm_head can cause that. 0.02 is usual.
✗ first.small: {first} Nobody can do better than that on random ids: the answers get in
  somewhere.
? first.high: {first} A little high: smaller weights at the start would save it some
  steps.
✓ first.fine: {first} As it should be.

✗ learning.nan: While it learns a batch, its loss becomes nan.
✓ learning.heart: One batch by heart: after {steps} steps its loss is {loss:.2f} (the
  lowest possible: {floor:.2f}; {ladder}).
✓ learning.falls: One batch: {start:.2f} at first, {loss:.2f} after {steps} steps, and
  still falling ({ladder}).
✓ learning.late: One batch: {start:.2f} at first, {loss:.2f} after {steps} steps; then
  time was up ({ladder}).
✓ learning.last: It learned everything that the last letter tells it: {loss:.2f}
  ({ladder}).
✗? learning.stops: It can't learn one batch by heart: it stops at {loss:.2f} ({ladder};
  by heart {floor:.2f}). {hint}
· stops.nothing: It has learned nothing at all.
· stops.letters: So it knows how often each letter comes, and nothing about what it
  reads: only the last bias learns.
· stops.last: So it uses the letter before, and no more context.
· stops.worse: That's worse than the letter frequencies. Something holds it back.

? text.short: The text has {n} ids, too few for two halves of windows of {T}.
· text: On {part} its loss is {loss:.3f} nats per id. Counted on the first half, for
  comparison: {ladder}.
✓ text.untrained: {text} It isn't trained yet.
✗ text.worse: {text} It knows less than nothing: it is sure, and wrong. Are these its
  ids?
✓ text.rung: {text} So it's better than {rung}. {course}
· course.between: If these are Tiny Shakespeare's characters, it is between the course's
  {worse} and its {better}.
· course.end: The course's ladder ends at {better}.
✗ shift.none: It repeats the id that it has just read (loss {loss:.2f}; of the next one
  {right:.2f}). In training the targets weren't shifted: y = data[i + 1 : …].
✗ shift.twice: It predicts the id after the next one (loss {loss:.2f}; of the next one
  {right:.2f}). In training the targets were shifted twice, perhaps once by you and once
  by the model.
"""
SENTENCES = dict(re.findall(r"^[✗?✓·]+ (\S+): (.*?)(?=^[✗?✓·]|\Z)", TEXT, re.M | re.S))

# One bug has several symptoms: a symptom, and what may follow from it.
EXPLAINS = {
    "one": "broke",
    "state": "luck neighbors future first order past through loss",
    "unregistered": "luck alike future gradient order past through unused",
    "luck": "first loss",
    "axis": "neighbors future past order own loss first through gradient",
    "neighbors": "future past order through",
    "probabilities": "loss first through gradient unused",
    "range": "gradient first",
    "targets": "future first",
    "future": "past order own through first",
    "cut": "gradient",
    "unused": "past order own gradient through alike",
    "drops": "gradient",
    "order": "unused",
    "past": "order gradient through",
    "own": "past order through",
    "through": "gradient first",
    "relu": "gradient",
    "empty": "alike past order through relu",
}
UNSEEN = (
    "What nobody can see from the outside: attention scores that aren't divided by the "
    "root of head_size, one layer used twice, your learning rate, your precision, how "
    "you split the text, your tokenizer."
)
HONEST = "Your model is honest. Look at the split, the shift, the learning rate."
LATER = "This may follow from the above. Look again once that's fixed:"


def say(name: str, /, **blanks: Any) -> str:
    """A sentence, with its blanks filled in."""
    return " ".join(SENTENCES[name].format(**blanks).split())
