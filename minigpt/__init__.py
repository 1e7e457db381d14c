"""minigpt: the code that the notebooks build, line for line, each lesson in its own
part.

below all   require, files, interfaces          refusing bad input, whole files, types
lesson 01   data, bigram, evaluation            text, batches, a first model, its loss
lesson 02   averaging                           four ways to average the past
lesson 03   attention, language_model           one head, and the shell of every model
lesson 04   multi_head                          many heads, one batched operation
lesson 05   block                               feed-forward, residuals, LayerNorm
lesson 06   gpt, optimizer, training, generation, checkpoint, device
            whole                               the GPT of 06 in one file, alone
lesson 07   playwright                          a text in which every choice is known
lesson 08   modern                              what came after GPT-2
lesson 09   fast                                keys and values are read once
lesson 10   parallel                            many machines as one
lesson 11   inside                              what the heads do
lesson 12   backward                            the GPT's gradients without torch
lesson 13   tokens                              pieces of words, losses per character
lesson 14   bridge                              GPT-2's files, read and written
lesson 15   reward                              what a reward buys, and its price
beside them stored (trained models and a text), clinic (what's wrong with a GPT),
            tools (the command line and its files), course (exercises' checks,
            experiments and their records, figures)

A module imports only what's above it. `python -m minigpt --help` explains the
command line.
"""

__version__ = "0.2.0"
