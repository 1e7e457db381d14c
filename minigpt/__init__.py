"""minigpt: the code that the notebooks build, one module a lesson.

lesson 01   data, bigram          text, batches and the simplest model
lesson 02   averaging             four ways to average the past
lesson 03   attention             one head, and the shell of every model
lesson 04   multi_head            many heads, one batched operation
lesson 05   block                 feed-forward, residuals, LayerNorm
lesson 06   gpt, checkpoint, optimizer, training, generation
lesson 07   playwright, playwright_lexicon   a text whose every choice is known

`plots` draws the figures, `measure` takes time and memory, `ladder` keeps the
losses measured on the way, and `checks` holds the exercises' checkers.
`publish` makes slides, a web site, work sheets and Colab files from the notebooks.
`python -m minigpt --help` explains the command line.
"""

__version__ = "0.1.0"
