"""What of a lesson's paragraphs and code stands on slides: strings in, strings out."""

import ast
import re

SHORT = 14  # words of an item in a list below a sentence
WORDS = 70  # of a paragraph that is shown as a whole
SET_UP = 50  # words above a question, at most
FEW = 9  # words: where a first sentence has fewer, the next is shown, too
ASKS = "**Can you answer"  # the questions at a lesson's end
DRAWS = re.compile(r"\b(plt|figs?|ax|axes|drawings)\b|\bplots\.(?!LiveCurve)")
ENDS = re.compile(  # of a sentence, where another begins; "P. Gage" is no end
    r"(?:(?<=[.?!])|(?<=[.?!]\))|(?<=[.?!]\*\*))(?<!\b[A-Z]\.)(?<!et al\.)\s+"
    r"(?=[A-Z0-9`$*(\"])"
)
BACK = re.compile(  # so begins a paragraph about what the code before it has shown
    r"\(|(It|They|These|This|That|Those|Both|With|Here|Alone|The (first|last|two))\b"
)
DANGLES = re.compile(  # so begins a sentence that needs the one before it
    r"\(|(Or|So(?! far)|And|But|It|Then|This|These|That|There is one|In each box)\b"
)
REFERS = re.compile(r"\b(before and after|the three)\b")  # to what stands before it
TERM = re.compile(  # what stands out in a paragraph: a new word, or a phrase
    r"\*\*(?!\s|Predict|Think|Next|Further|Beside|Can you)[^*]*[^*.?!:\s]\*\*"
)
MOVES_ON = re.compile(  # so begins a paragraph that leaves what was shown
    r"\(|(And|Or|So|Now|Here|Next|Let|We|As|Does|What|How|Which|Why|Where does)\b"
)
DEFINES = re.compile(  # so begins a sentence that says what a thing is
    r"(`[^`]+`|(The|An?|One|In \w+ an?)\b[^.;:,]*?) (is|are) (an?|the|that|their|one)\b"
    r"(?! (same|half|third|quarter|\w+th)\b)"
)
PRINTS = re.compile(  # functions and methods that load records, format and print
    r"record\.\w+|print|min|max|sum|len|zip|map|list|sorted|round|range|join|"
    r"(.*\.)?(mean|spread|split|min|max|values|items|keys|get|format|ljust|rjust|"
    r"replace|join)"
)
FOLD = re.compile(r"<details.*?</details>", re.S)
ASIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)?(?:evidence|exercises)/[^)]*\)")
BRACKETS = re.compile(r"\s*\((?:[^()]|\([^()]*\))*\)")
POINTERS = re.compile(  # sentences that only say where more stands
    r"(?:^|(?<=[.?!)\n])\s)[^.?!|*]*\b(?:stands?\s+in|tested\s+in|try)\s+the\s+"
    + ASIDE.pattern
    + r"\.|\*\*Beside this notebook:\*\*[^*]*"
)


def without_asides(source: str) -> str:
    """A lesson's text without what leads to the evidence, the exercises and up the
    page: a link alone leaves its words, one in brackets goes with them."""
    source = source.replace(" without scrolling up", "")
    source = BRACKETS.sub(_without_pointer, source)
    source = POINTERS.sub("", source)
    source = re.sub(r":\s(?:the )?" + ASIDE.pattern + r"(?=\.)", "", source)
    return ASIDE.sub(r"\1", source).strip()


def _without_pointer(brackets: re.Match[str]) -> str:
    """What stays of words in brackets: all, nothing, or what a long remark says before
    it leads on."""
    if not ASIDE.search(brackets[0]):
        return brackets[0]
    *kept, last = ENDS.split(brackets[0])
    if kept and ASIDE.search(last) and len(" ".join(kept).split()) > FEW:
        return " ".join(kept) + ")"
    many = len(ASIDE.sub("", brackets[0]).split()) > 2 * FEW
    return brackets[0] if many else ""


def seen_and_said(source: str, recap: bool = False) -> list[tuple[str, str]]:
    """The paragraphs of a text in their order, in pieces: ("seen", ...) for headings,
    formulas, drawings in code, the promise and questions; ("said", ...) for prose.

    Of a recap, and of the questions at the end, all is seen but the answers and what
    to read further.
    """
    found, further = [], False
    for paragraph in re.split(r"\n{2,}", FOLD.sub(_in_one_piece, source)):
        if paragraph.startswith("<details"):
            found.append(("said", paragraph.replace("\0", "\n\n")))
            continue
        about = paragraph.startswith(("**Further", "**Beside"))
        further = about or (further and not paragraph.startswith("**"))
        seen = re.match(r"#|\$\$|```|\*\*Predict|> |\*\*(?!Further|Beside)", paragraph)
        recap = recap or paragraph.startswith(("## Recap", ASKS))
        if "**Predict" in paragraph and not seen:
            paragraph, _, asked = paragraph.partition("**Predict")
            found += [("said", paragraph), ("seen", "**Predict" + asked)]
        else:
            seen = seen or (recap and not further)
            found.append(("seen" if seen else "said", paragraph))
    return [(kind, text) for kind, text in found if text.strip()]


def _in_one_piece(fold: re.Match[str]) -> str:
    return re.sub(r"\n{2,}", "\0", fold[0])


def sentences(source: str) -> list[str]:
    """The sentences of a paragraph; [] for a list, a table or a fold."""
    if re.match(r"[-|<]|\d+\. ", source):
        return []
    return ENDS.split(source.strip())


def without_remarks(found: list[str]) -> list[str]:
    """These sentences without those in brackets."""
    kept, depth = [], 0
    for sentence in found:
        if not depth and not sentence.startswith("("):
            kept.append(sentence)
            continue
        depth = max(0, depth + sentence.count("(") - sentence.count(")"))
    return kept


def findings(source: str, chosen: tuple[int, ...] | None = None) -> list[str]:
    """What the paragraph behind a result says it shows, the best first: what it says in
    bold, else what it says first; [] if it moves on to something else, or says what a
    thing is. chosen: the numbers of the sentences that the lesson's author chose (1 is
    the first, 0 none)."""
    said = sentences(source)
    if chosen is not None:
        told = [" ".join(said[n - 1].split()) for n in chosen if n and said[n - 1 :]]
        return [" ".join(told[:count]) for count in range(len(told), 0, -1)]
    if source.endswith((":", "?")):  # the end leads on, with what it refers to
        said = said[: -2 if DANGLES.match(said[-1]) else -1]
    said = without_remarks(said)
    if not said or MOVES_ON.match(said[0]) or said[0].endswith("?"):
        return []
    first = said[0]
    if said[1:] and len(first.split()) < FEW and not MOVES_ON.match(said[1]):
        first = f"{first} {said[1]}"
    near = [n for n, one in enumerate(said[:2]) if "**" in one]
    late = [one for one in said[2:] if re.match(r"(So )?\*\*", one)]
    claims = [" ".join(said[: near[-1] + 1])] if near else late[:1]
    if not DEFINES.match(said[0]):
        claims += [first, said[0]]
    elif near:
        claims = []
    return [one for one in claims if len(one.split()) <= 5 * FEW]


def short_list(source: str) -> str:
    """A list as a slide has it: long items by what is bold in them, or their first
    words; "" if there are too many."""
    items = []
    for item in re.split(r"\n(?=- |\d+\. )", source.strip()):
        mark, text = item.split(" ", 1)
        text = " ".join(text.split())
        if len(text.split()) > SHORT:
            bold = re.match(r"\*\*.*?\*\*", text)
            text = bold[0] if bold else ENDS.split(text)[0]
        if len(text.split()) > SHORT:
            words = text.split()[:SHORT]
            while words[1:] and any(" ".join(words).count(c) % 2 for c in "$`*"):
                words.pop()
            text = " ".join(words).rstrip(",;:") + " …"
        items.append(f"{mark} {text}")
    return "\n".join(items) if len(items) <= 4 else ""


def first_said(source: str, begins: bool = False) -> str:
    """What a paragraph says first: its first sentence, and the next ones as well if it
    is short; "" for a list, a table or a fold. begins: below a heading, where nothing
    may begin that needs a sentence before it, or a picture beside it."""
    said, found = "", sentences(source)
    stand = [n for n, one in enumerate(found) if not DANGLES.match(one)]
    if begins and stand and found[stand[0]][-1] != ":":
        found = found[stand[0] :]
    for sentence in found:
        if len(said.split()) >= FEW or len(f"{said} {sentence}".split()) > 5 * FEW:
            break
        said = f"{said} {sentence}".strip()
    return said or "".join(found[:1])


def upright(found: list[str], start: int) -> int:
    """The number of the sentence that begins what this one belongs to: of one that
    needs no other before it; -1 if there is none."""
    while start >= 0 and DANGLES.match(found[start]):
        start -= 1
    return start


def emphasised(source: str) -> tuple[list[str], dict[int, set[int]]]:
    """The sentences of a paragraph, and {number of one with a word in bold: the numbers
    of all that are needed to understand it}."""
    found = without_remarks(sentences(source))
    needed = {}
    for number, sentence in enumerate(found):
        if TERM.search(sentence):
            start = upright(found, number)
            needed[number] = set(range(max(0, start), number + 1))
    return found, needed


def set_up(source: str) -> str:
    """What must be known to answer the question behind a paragraph: all of it if it is
    short, else what is in bold."""
    found, needed = emphasised(source)
    if len(" ".join(found).split()) <= SET_UP:
        return " ".join(found)
    chosen = set().union(*needed.values())
    told = " ".join(found[n] for n in sorted(chosen))
    return told if len(told.split()) <= WORDS else ""


def before_formula(source: str) -> str:
    """The sentence that leads to the formula behind a paragraph, with those without
    which it is not understood."""
    found = without_remarks(sentences(source))
    start = upright(found, len(found) - 1)
    return " ".join(found[start:]) if found and start >= 0 else ""


def lead(said: list[str], explain: bool = False) -> str:
    """The sentence that leads to the code behind these paragraphs: the last if it ends
    in a colon or asks, else the first of the last paragraph.

    What refers to the sentence before it comes with that, or not at all.
    explain: a paragraph alone begins with what the code before has shown, so that what
    leads on is its sentence with a new word, in bold, or its end.
    """
    found = without_remarks(sentences(said[-1])) if said else []
    if not found:
        return ""
    explain = explain and len(said) == 1
    bold = [n for n, one in enumerate(found) if "**" in one] if explain else []
    back = explain and bool(BACK.match(found[0]))
    end = len(found)
    if found[-1].endswith((":", "?")):
        start = end - 1
    else:
        start = bold[0] if bold else end - 1 if back else 0
        end = start + 1
    if DANGLES.match(found[start]) and not found[start].endswith("?"):
        while start >= 0 and DANGLES.match(found[start]) and found[start][-1] != "?":
            start -= 1
        if start < 0:
            return ""
    elif start and REFERS.search(found[start]):
        while start and len(" ".join(found[start - 1 : end]).split()) <= 5 * FEW:
            start -= 1
    elif len(" ".join(found[start:end]).split()) < FEW and not bold:
        if start > back and not DANGLES.match(found[start - 1]):
            start -= 1
        elif start == 0:
            end += 1
    text = " ".join(found[start:end])
    return "" if len(text.split()) > 5 * FEW else text


def shortened(source: str) -> str:
    """A paragraph cut after the sentence that makes it long; if it leads to something,
    its last sentence stays."""
    found = sentences(source)
    last = [found.pop()] if source.endswith(":") and found else []
    kept: list[str] = []
    for sentence in found:
        if kept and len(" ".join([*kept, sentence, *last]).split()) > WORDS:
            break
        kept.append(sentence)
    while kept[1:] and " ".join(kept).count("(") > " ".join(kept).count(")"):
        kept.pop()
    return " ".join(kept + last) if found else source


def as_shown(source: str, asks: bool) -> str:
    """What is seen of a paragraph: bold prose cut, a question without a short remark in
    brackets. asks: is there a question in this cell? Then all else is needed."""
    if source.startswith("**Predict"):
        found = sentences(source)
        kept = " ".join(without_remarks(found))
        few = len(source.split()) - len(kept.split()) < SHORT
        return kept if few and kept != " ".join(found) else source
    is_prose = re.match(r"\*\*(?!Think)", source) and not asks
    return shortened(source) if is_prose else source


def without_drawing(source: str, figure: bool) -> str:
    """Python source, without the statements that draw if a figure follows; "" if only
    imports are left."""
    source = re.sub(r"\n{3,}", "\n\n", source)  # slides are low
    kept, lines, start = [], source.splitlines(), 0
    try:
        statements = ast.parse(source).body
    except SyntaxError:  # a magic command of IPython
        return source
    for node in statements:
        text, start = "\n".join(lines[start : node.end_lineno]), node.end_lineno
        if "plots.LiveCurve(" in text:  # what it tells stands beside the figure
            text = re.sub(r"(plots\.LiveCurve)\(.*\)", r"\1(...)", text, flags=re.S)
        if not (figure and DRAWS.search(text)):
            kept.append((node, text))
    if all(isinstance(node, (ast.Import, ast.ImportFrom)) for node, _ in kept):
        return ""
    return "\n".join(text for _, text in kept).strip("\n")


def only_prepares(source: str) -> bool:
    """Does code only import, give names to values and set a seed?"""
    try:
        nodes = ast.parse(source).body
    except SyntaxError:  # a magic command of IPython, or a piece
        return False
    plain = (ast.Assign, ast.Import, ast.ImportFrom)
    seed = re.compile(r"torch\.manual_seed\(")
    return all(isinstance(n, plain) or seed.match(ast.unparse(n)) for n in nodes)


def only_assigns(source: str) -> bool:
    """Does code do nothing but give names to values?"""
    try:
        return all(isinstance(node, ast.Assign) for node in ast.parse(source).body)
    except SyntaxError:  # a magic command of IPython
        return False


def only_records(source: str, loaded: set[str]) -> set[str] | None:
    """The names that code binds which does nothing but load records, format and print
    them; None for other code. loaded: names that such code has bound before."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:  # a magic command of IPython
        return None
    read = {n.id for n in nodes if isinstance(n, ast.Name)}
    bound = {
        n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    bound |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    calls = [ast.unparse(n.func) for n in nodes if isinstance(n, ast.Call)]
    plain = all(c in bound | loaded or PRINTS.fullmatch(c) for c in calls)
    classes = any(isinstance(n, ast.ClassDef) for n in nodes)
    about = "record" in read or bool(read & (loaded - bound))
    return bound if about and plain and not classes else None


def without_checks(source: str) -> str:
    """Python source where a comment stands for each check that raises an error, and for
    the operators of a class that are written as the first of them."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:  # a magic command of IPython, or a piece
        return source
    lines: list[str | None] = list(source.splitlines())

    def replace(start: int, end: int, words: str) -> None:
        indent = re.match(" *", source.splitlines()[start - 1])
        lines[start - 1 : end] = [(indent[0] if indent else "") + words]
        lines[start:start] = [None] * (end - start)

    for node in nodes:
        if isinstance(node, ast.If) and not node.orelse:
            if len(node.body) == 1 and isinstance(node.body[0], ast.Raise):
                replace(node.lineno, node.end_lineno or node.lineno, "# … checks")
        if isinstance(node, ast.ClassDef):
            alike = [one for one in node.body if _only_passes_on(one)]
            if len(alike) > 2 and node.body[-1] is alike[-1]:
                last = node.body[-1].end_lineno or 0
                replace(alike[1].lineno, last, "# … and so do the other operators")
    kept = [line for line in lines if line is not None]
    return re.sub(r"(# … checks)(\n *# … checks)+", r"\1", "\n".join(kept))


def _only_passes_on(node: ast.stmt) -> bool:
    """Is this an operator of a class that only calls a function or makes a text?"""
    return (
        isinstance(node, ast.FunctionDef)
        and len(node.body) == 1
        and isinstance(node.body[0], (ast.Return, ast.Expr))
        and node.name != "forward"
    )
