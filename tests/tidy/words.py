"""The words that the project does not use, in identifiers, comments, messages and documents, and what to write; and turns of phrase
that make a reader go back, because a pronoun or a measure word is where a noun belongs. A finding of the second kind is a question.
"""

import dataclasses
import re
from typing import Iterator

from links import prose
from tree import Finding, SourceFile


@dataclasses.dataclass(frozen=True)
class Word:
    pattern: re.Pattern[str]  # over the line as it is
    instead: str
    folders: tuple[str, ...] = ()  # empty: everywhere


def part(word: str) -> str:
    """Finds `word` as a whole word and as a part of an identifier: road, search_road, kRoad, RoadTimes, roadTo."""
    first, rest = word[0], word[1:]
    return (rf"(?<![A-Za-z])[{first.upper()}{first}]{rest}(?![a-z])"      # road, search_road, road_, Road, RoadTimes
            rf"|(?<=[a-z0-9]){first.upper()}{rest}(?![a-z])")              # kRoad, SearchRoads


def word(pattern: str, instead: str, *folders: str) -> Word:
    return Word(re.compile(pattern), instead, folders)


WORDS = (
    word(part("roads?"), "path (request path, load path); an execution path is a strategy"),
    word(part("rooms?"), "capacity, buffer, space"),
    word(r"[Ss]tand-ins?\b|[Ss]tand_ins?|StandIn|\b(in|in its|in their) stead\b|[Ii]n the stead", "fallback backend"),
    word(part("patience"), "CallContext; a timeout"),
    word(part("questions?"), "query; ResolvedQuery"),
    word(r"\b(struct|class|enum class) (Ask|Round|Ground)\b|\b(Ask|Ground)\b(?=[&*]| \w+[;{=)])",
         "DeviceQuery, SearchBatchBuilder, BaseServices"),
    word(r"(?<![A-Za-z])(halves|[Hh]alves_|_halves|Halves[A-Z]|[Hh]alved?)(?![a-z])|[a-z]Halves|[a-z]Halve[A-Z]",
         "fp16 rows, ConvertToFp16"),
    word(r"(?i)nibble", "int4"),
    word(r"(?i)(?<!\w)survivors?|_survivors?|Survivors?", "candidates"),
    word(part("verdicts?") + r"|\b[Jj]udge[sd]?\b", "proof, Certify"),
    word(part("wordings?"), "message text"),
    word(r"(?<![A-Za-z])shown_|_shown\b|\bshown\b(?=\s*[;,)=(\[]|\.\w|->)", "display name"),
    word(part("untold") + r"|\btold_\b|\bTells?Of\w*", "notified, pending, NotifyCompleted"),
    word(r"\b(Note|Take)\(", "a verb that says what is done"),
    word(r"\b[Ww]hoever\b|\bhungriest\b|\bin the midst\b|\bas ever\b|\bunpunished\b|\bwhat is to come\b", "a plain sentence"),
    word(r"\bstands?\b(?! for\b)", "is"),
    word(r"\b(holds?|held)\b[^.;]{0,60}\bagainst\b", "compares with"),
    word(part("fallbacks?"), "cold start", "src/engine/query/", "proto/"),
    word(part("batchers?") + r"|\b[Bb]atch policy\b", "executor, schedule"),
)

# What has another sense where it is found: the file, what its line holds, and which sense that is.
ALLOWED = (
    (r"^src/app/config/settings\.cpp$|^CHANGELOG\.md$", r"(?i)backend.nibbles|--fallback", "the old name of a renamed setting or flag"),
    (r"^tests/(app/config_read_test|cli/\w+)\.cpp$", r"(?i)nibbles|--fallback", "the same, refused"),
)


def allowed(file: SourceFile, line: str) -> bool:
    return any(re.search(path, file.path) and re.search(text, line) for path, text, _ in ALLOWED)


def plain_words(file: SourceFile) -> Iterator[Finding]:
    """The words of tests/tidy/words.py are not used; each says what to write instead."""
    if file.path.startswith("tests/tidy/"):
        return
    for number, line in enumerate(file.lines, 1):
        for entry in WORDS:
            if entry.folders and not file.path.startswith(entry.folders):
                continue
            if entry.pattern.search(line) and not allowed(file, line):
                yield Finding(file.path, number, f"plain-words (write: {entry.instead})", line.strip())


SENTENCE_FOLDERS = ("src/", "include/", "kernels/", "proto/simile/", "docs/", "README.md")

# A phrase, and what to write. Patterns run over whole sentences, so a phrase may go over the end of a line.
SENTENCES = {
    "so many": (r"\b[Ss]o\s+(?:many|few)\b(?!\s+that\b)", "the number, or the name of what gives it"),
    "as many again": (r"\bas\s+(?:much|many)(?:\s+\w+)?\s+again\b", "the number, with its noun"),
    "each of which": (r"\b(?:each|all|some|most|none|half|one|two|many|part|the\s+(?:first|last))\s+of\s+(?:which|whom)\b",
                      "a second sentence that begins with the noun"),
    "of which": (r"(?<!each )(?<!all )(?<!some )(?<!most )(?<!none )(?<!half )(?<!one )(?<!two )(?<!many )(?<!part )(?<!first )"
                 r"(?<!last )\bof\s+which\b", "a second sentence that begins with the noun"),
    "those that": (r"\b[Tt]hose\s+(?:that|who|whose)\b", "the noun again"),
    "such of": (r"\b[Ss]uch\s+(?:of|have|has|are|is|were)\b", "the noun again"),
    "than the others": (r"\b(?:of|than|before|behind|as)\s+the\s+others\b(?!')", "the noun: the other rows, the unmarked columns"),
}

# Where a phrase is right: the file, its text, and why.
SENTENCES_ALLOWED: tuple[tuple[str, str, str], ...] = (
)


def sentence_text(file: SourceFile) -> str:
    """What is prose: a document outside blocks of code, the comments of a source. Every line stays on its line."""
    if file.is_doc:
        lines = dict(prose(file.lines))
        return "\n".join(lines.get(number, "") for number in range(1, len(file.lines) + 1))
    return "\n".join(line.partition("//")[2] for line in file.lines)


def plain_sentences(file: SourceFile) -> Iterator[Finding]:
    """Documents and comments use none of the phrases of tests/tidy/words.py that leave out a noun, except where that file says why."""
    if not file.path.startswith(SENTENCE_FOLDERS) or not (file.is_doc or file.is_cpp or file.suffix == ".proto"):
        return
    text = sentence_text(file)
    for name, (pattern, instead) in SENTENCES.items():
        for match in re.finditer(pattern, text):
            number = text.count("\n", 0, match.start()) + 1
            around = " ".join(text[max(0, match.start() - 80):match.end() + 80].split())
            if not any(re.search(path, file.path) and re.search(words, around) for path, words, _ in SENTENCES_ALLOWED):
                yield Finding(file.path, number, f"plain-sentences ({name}; write: {instead})", file.lines[number - 1].strip())


RULES = {"plain-words": plain_words, "plain-sentences": plain_sentences}
