"""The playwright's own words and lines, written for this course: data, no program.

`grammar.py` explains what a Lexicon holds.
"""

from minigpt.playwright.grammar import Lexicon

LEXICON = Lexicon(
    names=tuple(
        "Hob|Nan|Ghost|Sir Loin|Egbert|Friar Tub|Maud|Fool|Lady Brine|Wart|Leech|"
        "Duke Bun|Sprat|Widow Twig|Mumble|Old Plum".split("|")
    ),
    words={
        # All begin with a consonant, so that "a" fits before each.
        "noun": tuple(
            "goose ham boot pig hat cheese goat wig spoon cod hen duck pie leek bean "
            "cat mule cow toad newt flea louse rat bed door drum lute bell book bone "
            "bowl broom bun cart chair cloak crab cup dish fan fig fork fox frog "
            "glove gown hip hog horse hose jug kettle key knee knife lamp leg lip "
            "loaf map moth mop mouse mug nail neck nose nut pan pear pen pin pipe "
            "plum pot purse ring rope rug sack sheep shin shoe shirt sieve skull "
            "snail sock soul soup spade stool sword tart thumb toe tongue tooth "
            "trout trumpet tub turnip wart wasp whale wand worm beard bag bat bib "
            "bow box bull cage cake calf cap carp chin claw clam crow crumb dice "
            "dart deer dove fang fist flag foal foot fowl fur gate grub gull gut "
            "hand hare hawk heel helm hook horn hut jar jaw jay lamb lark leaf lid "
            "lung mast mole monk moon pew pill plate pond pony prune quail rag rake "
            "ram rib rock rod rook root rose rump saw scarf seal shrub slug sponge "
            "squid stag star sty swan tail tent thigh tick tile torch tray vest vole "
            "wall web wheel wick wolf wren yam yoke".split()
        ),
        "nouns": tuple(
            "geese pigs nuns hens goats bees ducks fools cows knights mules kings "
            "newts cooks eels owls rats monks toads wasps hams ghosts friars boots "
            "lords worms dogs cats bats foxes moles wolves bulls crows clowns dukes "
            "earls elves fleas frogs hogs lice mice moths nuts oxen peas pies popes "
            "queens rams saints sheep slugs snails swans tarts whales weeds "
            "witches".split()
        ),
        "adj": tuple(
            "fat damp bald sweet sour mad royal wet holy cold stale dead sad false "
            "proud blind humble dry raw soft hard deaf lame glad meek mild bold base "
            "foul fair true plain vain vile rude lewd shy sly coy grim gross great "
            "small short tall long loud mute pale pink green grey red blue rich "
            "poor cheap dear lost noble rotten pickled greasy mouldy hairy crooked "
            "borrow'd jealous drunken bearded boil'd stuff'd butter'd salted naked "
            "sober Danish bad big bent bare brave calm chaste clean cross cruel "
            "curly daft dark deep dim dizzy dull dusty fine flat fond frail free "
            "fresh full giddy good grand happy hot huge keen kind lazy lean limp "
            "loose low lucky merry moist new nice numb pert plump prim puny pure "
            "quick quiet rare rash ripe round rusty sharp sick silly slow smug "
            "square stiff stout strange tame thick thin tipsy vast wan warm weak "
            "white wide wild wise young French Greek Roman".split()
        ),
        "verb": tuple(
            "kiss sell drown wed boil eat shave sue bite rob hide bathe feed burn "
            "pawn bury crown slap stuff salt praise curse hang flog fry beat bless "
            "chase carve dress fear fight greet hug haunt lick love mock mourn obey "
            "paint pinch poke rule scold serve shame sniff spare squeeze tickle "
            "trust woo wake weigh pluck roast knight smell forgive ask bake bind buy "
            "catch cheat chew choke clean cook court cure cut dip dodge dye envy "
            "fool follow free gild grill hire hit jab judge jilt keep kick lift lose "
            "lure marry meet milk mend miss nip nurse own pat peel pet pickle pity "
            "please poach push quit rub ruin save seek shove shun sip sketch slay "
            "smite snub soak spurn starve steal stir swap sweep tax teach tease "
            "tempt thank throw tie toast trap trim tug vex wash watch whisk "
            "wipe".split()
        ),
        # Each fits after "I" as well as after "I have": no "ate", no "eaten".
        "past": tuple(
            "kiss'd|sold|drown'd|wed|boil'd|shaved|sued|bit|robb'd|hid|bathed|fed|"
            "burnt|lost|pawn'd|buried|crown'd|slapp'd|stuff'd|salted|praised|cursed|"
            "hang'd|fried|lick'd|haunted|sat on|dug up|woo'd|tickled|knighted|taught|"
            "sniff'd|pluck'd|baked|bought|caught|cured|dyed|fooled|hired|hit|jilted|"
            "judged|kept|kick'd|left|led|married|met|milk'd|mended|paid|peel'd|"
            "pitied|poach'd|ruin'd|shot|sketch'd|soak'd|spurn'd|struck|sung to|swept|"
            "tax'd|trapp'd|vex'd|wash'd|whisk'd|won".split("|")
        ),
        "owner": tuple(
            "bishop duke king queen cook nun judge miller hangman widow abbot tailor "
            "devil midwife jester Pope earl monk page groom smith baker vicar squire "
            "bride clerk".split()
        ),
        "place": tuple(
            "pantry bog cellar chapel kitchen moat tavern crypt barn privy forest "
            "castle stable dungeon garden graveyard cave wood ditch marsh hall heath "
            "jail tomb tower court camp beach".split()
        ),
        "saint": tuple(
            "Wilf Bodkin Gosling Mump Crumb Audrey Doily Fergus Snood Tib Bob Dot "
            "Egg Gus Lump Mab Nub Pip Tum Zeb".split()
        ),
        "faced": tuple(
            "faced witted nosed brain'd born fed legg'd hearted bottom'd eared "
            "lipp'd kneed fisted bred footed headed bellied tongued eyed "
            "chinn'd".split()
        ),
        "my": tuple("my the a this that our his her yon some one each no any".split()),
        "would": tuple(
            "would must will could shall dare may should might did can".split()
        ),
        "by": tuple(
            "in on with by near behind under for upon beneath beside like over round "
            "past from at without after before against above".split()
        ),
        "when": tuple(
            "at noon|by night|in Lent|at dawn|in bed|till noon|in May|at sea|at Mass|"
            "once more|by post|for gold|in June|unseen|till death|in vain|by law|"
            "for fun|in Kent|in Rome|in tears|in wool|on foot|at tea|too late|by ear|"
            "for luck|uphill".split("|")
        ),
        "how": tuple(
            "softly loudly wisely sadly gladly madly badly often nobly meekly rudely "
            "twice ever seldom basely dearly slowly boldly coldly daily fondly "
            "justly kindly lamely nightly once oddly only proudly truly".split()
        ),
        "is": tuple("is was looks smells tastes feels seems grows sounds".split()),
        "and": tuple("and or then nor".split()),
        "kin": tuple(
            "mother father uncle aunt nurse cousin sister tutor godson heir niece "
            "nephew twin butler".split()
        ),
        "many": tuple(
            "two ten six three nine forty no all some few five four eight seven both "
            "most".split()
        ),
    },
    forms={
        "thou": ("thou", "you"),
        "thee": ("thee", "you"),
        "thy": ("thy", "your"),
        "Thy": ("Thy", "Your"),
        "thou art": ("thou art", "you are"),
        "art thou": ("art thou", "are you"),
        "thou hast": ("thou hast", "you have"),
        "hast thou": ("hast thou", "have you"),
        "wilt thou": ("wilt thou", "will you"),
        "thou shalt": ("thou shalt", "you shall"),
        "thou dost": ("thou dost", "you do"),
        "dost thou": ("dost thou", "do you"),
    },
    phrases={
        "insult": "{adj} {noun}-{faced} {noun}",
        "oath": "by Saint {saint}'s {adj} {noun}",
        "deed": "{past} the {owner}'s {noun}",
    },
    rhymes=(
        ("king", "ring", "thing", "string", "wing", "spring"),
        ("cat", "hat", "rat", "bat", "mat", "gnat"),
        ("pig", "wig", "fig", "jig", "twig"),
        ("goat", "boat", "coat", "throat", "stoat", "moat"),
        ("mouse", "house", "louse", "spouse", "grouse"),
        ("knight", "bite", "fight", "kite", "fright", "light"),
        ("crown", "clown", "gown", "town", "frown"),
        ("pie", "fly", "lie", "spy", "thigh"),
        ("heart", "tart", "cart", "dart", "part"),
        ("frog", "dog", "hog", "log", "bog"),
        ("purse", "curse", "nurse", "verse", "hearse"),
        ("tail", "snail", "whale", "pail", "nail", "tale"),
    ),
    lines={
        "entrance": (
            "A {adj} {place}. Enter {enter}, {enter} and {enter}.",
            "The {place}, {when}. Enter {enter} and {enter}.",
            "Behold {my} {adj} {place}! Enter {enter}, {enter} and {enter}.",
            "Enter {enter} and {enter}, {by} {my} {adj} {noun}.",
            "We {verb} {my} {adj} {place}. Enter {enter} and {enter}.",
            "Imagine {many} {adj} {nouns}. Enter {enter} and {enter}.",
        ),
        "opening": (
            "Hear me, {name}: {thou hast} {deed}!",
            "O {name}, {thou} {insult}!",
            "Alas, {name}, who {past} {my} {adj} {noun}?",
            "Kneel, {name}: I {verb} {thee} with {thy} {adj} {noun}.",
            "I swear {oath}, {name}, {thou art} {adj}.",
            "Good {name}, lend me {thy} {noun} {and} {thy} {adj} {noun}.",
            "They say, {name}, {my} {owner} hath {deed}.",
            "Is this {my} {adj} {noun}, {name}, {thou} {insult}?",
            "Come, {name}, let us {verb} {my} {adj} {noun} {when}.",
            "Peace, {name}, or {oath} I'll {verb} {thee}!",
            "Confess: {hast thou} {past} {my} {noun}, {name}?",
            "Sweet {name}, {thy} {noun} hath {deed}.",
            "Zounds, {name}! {Thy} {noun} {would} {verb} {my} {adj} {noun}.",
            "Speak, {name}: {art thou} not a {insult}?",
            "How now, {name}! I smell {many} {adj} {nouns}.",
            "Marry me, {name}, or {verb} {my} {adj} {noun} {when}.",
            "News, {name}! The {owner} {is} {adj}, {and} {thy} {kin} {past}.",
            "Look, {name}! {Thy} {noun} doth {verb} {my} {adj} {noun}.",
            "Tell me, {name}, {oath}, who {past} {my} {noun}?",
        ),
        "aside": (
            "Ay me, {my} {noun} {is} {adj}, and I am {adj} {when}.",
            "Methinks {my} {noun} {would} {verb} {my} {adj} {noun}.",
            "Last night I {past} {my} {adj} {noun} {by} {my} {noun}.",
            "Fetch me {my} {noun}, {my} {adj} {noun} {and} {many} {nouns}!",
            "'Tis {adj} to {verb} {my} {noun}, but {adj} to {verb} {nouns}.",
            "Ha! who {past} {my} {noun}? Some {insult}!",
            "I have, {oath}, {past} {many} {nouns}.",
            "Would I had {deed}!",
            "Poor I! My {kin} hath {deed}.",
            "Sleep? Nay, I {would} {verb} {my} {adj} {noun}.",
        ),
        "reply to insult": (
            "A {said}, am I? Then {thou art} a {insult}!",
            "Better a {said} than {my} {adj} {noun}, {name}.",
            "So was my {kin} a {said}, and {would} {verb} {thee}.",
            "No {said} {would} {verb} {my} {noun}, {name}.",
            "Who is a {said}, {name}? I, or {thy} {kin}?",
            "Unsay that {said}, or I {would} {verb} {thee}, {name}!",
        ),
        "reply to oath": (
            "I too swear, {said}, {thou art} {adj}.",
            "Swear not {said}, {name}: {verb} {my} {noun}.",
            "And I, {said}, {would} {verb} {thy} {kin}.",
            "Who swears {said} {would} {verb} {my} {adj} {noun}.",
            "What, {said}? Nay, by {my} {adj} {noun}, {name}!",
        ),
        "reply to deed": (
            "Who {said}? Not I! 'Twas {my} {adj} {noun}!",
            "Better {said}, {name}, than {past} {my} {noun}.",
            "I never {said}, {thou} {insult}!",
            "And he that {said} {would} {verb} {thee}, {name}.",
            "What if I {said}? {Thy} {kin} {past} {my} {noun}.",
            "Thrice have I {said}, and thrice {past} {my} {noun}.",
        ),
        "middle": (
            "For {thou hast} {past} {my} {adj} {noun} {and} {past} {thy} {noun}.",
            "Now I {would} {verb} {my} {adj} {noun} {by} {thy} {noun}.",
            "The {adj} {noun} {would} {verb} {thy} {noun} {when}.",
            "When {nouns} {verb} {nouns}, I'll {verb} {thy} {adj} {noun}.",
            "See, {thy} {noun} {is} {adj}, {thy} {noun} {adj}, {thy} {kin} {adj}.",
            "All {adj} {nouns} {would} {verb} {my} {noun} {by} {thy} {adj} {noun}.",
            "O {adj} {noun}! O {adj} {noun}! O {adj} {noun}!",
            "Where {adj} {nouns} {verb} {nouns}, {adj} {nouns} {verb} {nouns}.",
            "How {how} {would} {my} {noun} {verb} {thy} {adj} {noun}?",
            "Yet no {adj} {noun} {would} {verb} {my} {adj} {noun}.",
            "Nay, {thou art} {adj}, and {thy} {adj} {noun} {is} {adj}.",
            "Fie! {adj} {nouns} {verb} {adj} {nouns} {by} {my} {place}.",
            "Give me {my} {noun}, {my} {adj} {noun} {and} {many} {adj} {nouns}.",
            "Bring {my} {adj} {noun} {and} {verb} it {by} {thy} {adj} {noun}!",
            "No {noun}, no {adj} {noun}, no {adj} {noun} {would} {verb} {thee}.",
            "Swift as {my} {adj} {noun}, I {would} {how} {verb} {thy} {noun}.",
            "Say, {wilt thou} {verb} {my} {noun}, or {verb} {thy} {adj} {noun}?",
            "Hang {nouns}! Hang {adj} {nouns}! I'll {verb} {thy} {adj} {noun}.",
            "I saw {my} {noun} {verb} {my} {adj} {noun} {by} {my} {place}.",
            "But hark! {my} {noun} doth {verb} {my} {adj} {noun} {when}.",
            "Thus {adj} {nouns} {how} {verb} {my} {adj} {noun} {by} {my} {noun}.",
            "As {nouns} to {nouns}, so {is} {my} {adj} {noun} to {thee}: {adj}.",
            "To {verb} {my} {noun} {is} {adj}; to {verb} {nouns}, {adj}.",
            "A pox upon {my} {noun}, {my} {noun} {and} {many} {nouns}!",
            "What is a {noun}? A {noun} that {would} {verb} {my} {noun}.",
            "Why {dost thou} {verb} {my} {noun}, {thou} {insult}?",
            "Ask {my} {owner}; ask {my} {noun}; ask {thy} {adj} {noun}.",
            "I am as {adj} as {many} {nouns}, and as {adj} as {my} {noun}.",
            "So {thou shalt} {how} {verb} {my} {noun} or {verb} {thy} {kin}.",
            "Mine own {kin} hath {deed}.",
            "Let {nouns} {verb} {nouns}, and {nouns} {nouns}: I {would} {verb} {thee}.",
            "Is that a {noun} I smell {by} {thy} {adj} {noun}?",
            "If {my} {noun} be {adj}, {oath}, I {would} {verb} it.",
            "Were I {my} {noun}, and {thou} a {noun}, I'd {verb} {thee} {when}.",
            "Not {adj} {nouns} nor {adj} {nouns} {would} {verb} {thee}.",
            "My {kin} {is} {adj}, my {kin} {adj}, and I was {past} {when}.",
            "And {thou dost} {verb} like {my} {adj} {noun} {when}.",
            "Here lies {my} {noun}, that {past} {my} {adj} {noun} {and} died.",
            "Some call {my} {noun} {adj}. I call it {adj} and {verb} it.",
        ),
        "couplet first": (
            "May {nouns} {verb} {my} {adj} {noun} {and} {verb} my {rhyme},",
            "I'll {verb} {my} {noun} {when}, and {verb} {my} {adj} {rhyme},",
            "Though {adj} {nouns} {would} {verb} {my} {noun} to win a {rhyme},",
            "Farewell, {my} {adj} {noun}! Farewell, {my} {adj} {rhyme},",
            "Sing, {adj} {nouns}, of {my} {adj} {noun} and {my} {rhyme},",
            "Weep, {nouns}, for {my} {adj} {noun} that {past} a {rhyme},",
            "By {my} {adj} {place} I {past} {my} {adj} {rhyme},",
            "Ne'er was {my} {noun} so {adj} as {my} {noun} or {my} {rhyme},",
        ),
        "couplet second": (
            "And {my} {noun} {would} {verb} {my} {adj} {noun} or {verb} {my} {rhyme}.",
            "While {adj} {nouns} {how} {verb} {my} {noun} {by} {my} {rhyme}.",
            "Since {my} {noun} hath {past} {many} {nouns} to please a {rhyme}.",
            "For {nouns} are {adj}, {nouns} are {adj}, and {adj} {is} my {rhyme}.",
            "But {adj} {is} {my} {noun}, {and} {how} {would} I {verb} my {rhyme}.",
            "So {verb} {my} {noun}, {verb} {my} {noun}, and {verb} {my} {adj} {rhyme}!",
            "Till {adj} {nouns} {verb} {adj} {nouns}, or I {verb} {my} {rhyme}.",
            "Nor {would} {my} {adj} {noun} {verb} {nouns} without a {rhyme}.",
        ),
        "end": ("",),  # no further line: the speech is over
    },
    situations={
        "scene": {"entrance": 1},
        "after scene": {"opening": 1},
        "after nothing": {"opening": 0.5, "aside": 0.5},
        "after insult": {"reply to insult": 0.6, "opening": 0.15, "aside": 0.25},
        "after oath": {"reply to oath": 0.6, "opening": 0.15, "aside": 0.25},
        "after deed": {"reply to deed": 0.6, "opening": 0.15, "aside": 0.25},
        "somebody named": {"end": 0.4, "middle": 0.6},
        "nobody named": {"end": 0.3, "middle": 0.3, "couplet first": 0.4},
        "couplet first": {"couplet first": 1},
        "couplet second": {"couplet second": 1},
    },
)
