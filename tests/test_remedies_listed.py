"""Each message of fognn that names a remedy is listed here, with the test that follows the remedy or
the reason why none does. A new message fails this test until it is listed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import fognn

TESTS = Path(__file__).parent
_VERBS = (
    "remove|get|name|set|use|make|write|save|copy|put|give|take|try|train|resume|call|install|"
    "pip install|download|move|end|check|free|complete|number|clone|import|read|restore|unpack|"
    "start|pass|see|compare with|add|run|rename|replace|choose|lower"
)
REMEDY = re.compile(
    rf"(?:^|[:;,] |\b(?:or|and|then) )(?:{_VERBS})\b(?!: | (?:must|of|is|are|to line)\b)"
    r"|to resume|--[a-z]+[ )-]|: fognn |FOGNN_[A-Z]+[ =]"
)
# Texts that only say what an argument must be, and texts that are not messages.
_OTHER = re.compile(r"must .*got [^:;]*$|^--\S+ (?:must|is 0)|is (?:not )?set\)$|\n|^ZINC: free|:func:")

# The test, or the reason: fragments of messages, each of a single one.
FOLLOWED = {
