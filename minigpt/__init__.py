"""minigpt: the code that the notebooks build, one module a lesson.

lesson 01   data, device, evaluation, bigram   text, batches, the loss, a first model
lesson 02   averaging                    four ways to average the past
lesson 03   attention, language_model    one head, and the shell of every model
lesson 04   multi_head                   many heads, one batched operation
lesson 05   block                        feed-forward, residuals, LayerNorm
lesson 06   gpt, recipe, optimizer, training, checkpoint, generation, interrupts, files,
            sealed, workers              a GPT, trained, kept and writing
lesson 07   playwright, playwright_lexicon     a text whose every choice is known
lesson 08   modern_parts, modern, counts, counting     what came after GPT-2
lesson 09   cache, reading, writing, speculative, quantization     to write quickly
lesson 10   parallel, shards, corpus     many machines as one, texts of any size
lesson 11   looking, marks, originality  what the heads do, what is copied

A lesson imports earlier ones only, but for `load_text` (07's playwright, if there is
no text and no network), `generate` (reads through 09's `reading`), `load_checkpoint`
(knows 08's models and 10's shards) and `pick_device` (asks the doctor about a GPU).

`whole` is all of it on one page. Beside the lessons: `arguments`, `tensors`, `texts`
and `options` say what is wrong with an input; `plots` and `drawings` draw, `measure`
takes time and memory, `experiments` measure what takes long and `record` keeps it,
`ladder` shows the losses on the way, `doctor` looks whether a device computes what it
should, `benchmark` and `speedrun` race, `checks` holds the exercises' checkers,
`page` makes one HTML file of a trained model, `publish` slides, book, work sheets and
Colab notebooks of the course.
`python -m minigpt --help` explains the command line.
"""

__version__ = "0.1.0"
