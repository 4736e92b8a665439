"""Personal identification numbers of states, told from other numbers by form and check digits.

Only numbers whose form or checksum leaves little doubt are here: a plain row of nine digits is nobody's id until
proven otherwise. Sources: the numbering rules published by the issuing authorities (SSA, HMRC, UIDAI, Receita
Federal, INSEE, Skatteverket, the Spanish Ministry of the Interior, Agenzia delle Entrate, the Swiss CCO).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

__all__ = ["NATIONAL_IDS"]

Check: TypeAlias = Callable[[str], bool]


def _digits(text: str) -> list[int]:
    return [int(c) for c in text if c.isdigit()]


def _spain(text: str) -> bool:
    """DNI and NIE: a letter from the number modulo 23."""
    compact = text.replace("-", "")
    number = int(compact[:-1].translate(str.maketrans("XYZ", "012")))
    return compact[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23]


def _brazil(text: str) -> bool:
    """CPF: two weighted check digits."""
    digits = _digits(text)
    checks = []
    for length in (9, 10):
        total = sum(d * (length + 1 - i) for i, d in enumerate(digits[:length]))
        checks.append(total * 10 % 11 % 10)
    return digits[9:] == checks and len(set(digits)) > 1


def _france(text: str) -> bool:
    """NIR: 97 less the number modulo 97."""
    digits = "".join(c for c in text if c.isdigit())
    return int(digits[13:]) == 97 - int(digits[:13]) % 97


def _sweden(text: str) -> bool:
    """Personnummer: Luhn over the ten digits."""
    digits = _digits(text)
    doubled = [d * 2 - 9 if d > 4 else d * 2 for d in digits[0::2]]
    return (sum(doubled) + sum(digits[1::2])) % 10 == 0 and 1 <= int(text[2:4]) <= 12


def _switzerland(text: str) -> bool:
    """AHV number: an EAN-13."""
    digits = _digits(text)
    return (sum(digits[0::2]) + 3 * sum(digits[1::2])) % 10 == 0


_VERHOEFF_PRODUCT = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_SHIFT = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip


def _india(text: str) -> bool:
    """Aadhaar: Verhoeff's check digit."""
    check = 0
    for place, digit in enumerate(reversed(_digits(text))):
        check = int(_VERHOEFF_PRODUCT[check][int(_VERHOEFF_SHIFT[place % 8][digit])])
    return check == 0


def _by_form(text: str) -> bool:
    return True


NATIONAL_IDS: tuple[tuple[re.Pattern[str], int, Check], ...] = (
    # United States: social security number
    (re.compile(r"(?<![\w-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])"), 9, _by_form),
    # United Kingdom: national insurance number
    (
        re.compile(
            r"\b(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]\b(?![-\w])"
        ),
        3,
        _by_form,
    ),
    # Italy: codice fiscale
    (re.compile(r"\b[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]\b"), 3, _by_form),
    # Spain: DNI, NIE
    (re.compile(r"\b[XYZ\d]\d{7}-?[A-Z]\b"), 3, _spain),
    # Brazil: CPF
    (re.compile(r"(?<![\w.-])\d{3}\.\d{3}\.\d{3}-\d\d(?![\w-])"), 9, _brazil),
    # France: numéro de sécurité sociale
    (re.compile(r"(?<![\w-])[12] ?\d\d ?\d\d ?\d\d ?\d{3} ?\d{3} ?\d\d(?![\w-])"), 9, _france),
    # Sweden: personnummer
    (re.compile(r"(?<![\w-])\d{6}[-+]\d{4}(?![\w-])"), 9, _sweden),
    # Switzerland: AHV number
    (re.compile(r"(?<![\w.])756\.\d{4}\.\d{4}\.\d\d(?![\w.]\d)"), 9, _switzerland),
    # India: Aadhaar, as it is printed
    (re.compile(r"(?<![\w-])[2-9]\d{3} \d{4} \d{4}(?![\w-]| \d)"), 9, _india),
)
"""Form, digits that a text with one holds at least (3 or 9), and whether a text of that form is one."""
