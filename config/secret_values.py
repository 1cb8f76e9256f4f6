"""Secrets inside a text, found by their form: whatever the key is called under which it stands.

PURE. A form that is masked in error costs a look at the file; one that is missed costs a password.
"""

import base64
import re
from collections.abc import Callable

MASK = "********"
"""What is shown instead of a secret."""

_QUOTE = r"""\\*["']"""
_PRIVATE_KEY = re.compile(
    r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)"
    r".*?(-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)",
    re.DOTALL,
)
_USER_INFO = re.compile(
    r"""((?::|%3A)(?://|%2F%2F)[^\s/?#@:"'<>\[\]%]*+(?::|%3A))(?!\d*(?:[/?#%]|$))"""
    r"""(?:(?!://)[^\s"'<>])*(@|%40)""",
    re.IGNORECASE,
)
"""The password of a URL, to the last ``@`` before white space, a quote or the next URL.

One that is not escaped may hold characters that end it by the rules. Digits and a slash are a port.
"""
_LOGIN = re.compile(
    r"(?:(?<=[\s=,;\"'])|^|(?<=\bthin:)|(?<=\boci:)|(?<=\boci8:))"
    r"(?!(?:acct|mailto|sips?|xmpp):)((?!\d)[\w.$#+-]++[:/])"
    r"(?:\"[^\"]*\"|(?!\d+/)[^\s/@:,;\"'][^\s@:,;\"']*)(@)(?=[/\w\[(])",
    re.IGNORECASE,
)
"""``user/password@`` and ``user:password@``, as texts of connections of Oracle and Go have them."""
_HEADER = re.compile(
    rf"(\b(?:(?:proxy-)?authorization|(?:set-)?cookie)(?:{_QUOTE})?\s*+[=:]\s*+(?:{_QUOTE})?)"
    r"(?![*]{8})(?:[^\"'\n]|(?<==)\"[^\"\n]*+\")*(?:[^\"'\n\\]|(?<==)\"[^\"\n]*+\")()",
    re.IGNORECASE,
)
_CREDENTIALS = re.compile(
    r"(\b(?:bearer|negotiate)\s++)(?=[\w~+/=.-]*[\d_~+/=.-]\w)[\w~+/=.-]{6,}()", re.IGNORECASE
)
_LOGIN_OPTION = re.compile(r"(?<!\S)((?:-u|-U|--user|--proxy-user)(?:\s++|=)[^\s:]++:)\S++()")
_NETRC = re.compile(r"(\blogin\s++\S++\s++password\s++)\S++()")
_TOKEN = re.compile(
    r"()(?<![\w-])(?:eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|gh[opusr]_\w{16,}|github_pat_\w{16,}|"
    r"glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|"
    r"[sr]k_(?:live|test)_\w{10,}|sk-[\w-]{20,}|npm_\w{30,}|pypi-[\w-]{30,}|hv[sb]\.[\w-]{20,}|"
    r"dckr_pat_[\w-]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|dop_v1_\w{40,}|shp(?:at|ca|pa|ss)_\w{20,}|"
    r"hf_\w{30,}|dapi[0-9a-f]{32}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}|glsa_\w{30,}|"
    r"AGE-SECRET-KEY-1\w{50,}|(?:(?<=http://)|(?<=https://))[\w.~-]{16,}(?=@))()"
)
"""What is a secret by its own form, wherever it stands: tokens of services, JSON web tokens."""
_HOOK = re.compile(
    r"(\b(?:hooks\.slack\.com/(?:services|triggers|workflows)|discord(?:app)?\.com/api/webhooks|"
    r"api\.telegram\.org)/)[^\s\"'<>]++()",
    re.IGNORECASE,
)
"""Addresses whose path is the secret."""
_SQL = re.compile(r"(\bidentified\s++by\s++)(?:'[^']*+'|\"[^\"]*+\"|\S++)()", re.IGNORECASE)
_FORMS = tuple(
    (form, needles.split())
    for form, needles in (
        (_PRIVATE_KEY, "-----begin"),
        (_USER_INFO, "@ %40"),
        (_LOGIN, "@"),
        (_HEADER, "authorization cookie"),
        (_CREDENTIALS, "bearer negotiate"),
        (_LOGIN_OPTION, "-u --"),
        (_NETRC, "login"),
        (_HOOK, "/services/ /triggers/ /workflows/ /webhooks/ telegram"),
        (_SQL, "identified"),
        (
            _TOKEN,
            (
                "eyj gh glpat xox kia sia aiza k_ sk- npm_ pypi hv :// dckr_ sg. dop_v1_ shp hf_ "
                "dapi ya29. gocspx glsa_ age-secret"
            ),
        ),
    )
)
"""Each with texts of which it has one, in small letters: to look for these costs little.

What a form keeps is its first group and its last one.
"""
_BASIC = re.compile(r"(\bbasic\s++)([A-Za-z0-9+/_-]{4,}={0,2})", re.IGNORECASE)
_OPTION = re.compile(
    r"(?<!\S)(--?(?P<name>[\w.-]++)\s++)(?!-)(?:\"(?:[^\"\\]|\\.)*+\"|'[^']*+'|\S++)"
)
_ELEMENT = re.compile(r"(<(?:\w+:)?(?P<name>[\w.-]++)(?:\s[^<>]*+)?>)[^<]++")
_PROPERTY = re.compile(r"(<name>\s*+(?P<name>[\w.-]++)\s*+</name>\s*+<value>)[^<]++", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    rf"(\b(?:name|key)\s*+=\s*+(?P<quote>{_QUOTE})(?P<name>[\w.-]++)(?P=quote)"
    r"\s++value\s*+=\s*+(?P=quote))(?:(?!(?P=quote)).)*+"
)
_ASSIGNED = re.compile(
    rf"(?<![\w.-])([\w.-]++)(?:{_QUOTE})?\s*+(?:\]\s*+)?(?:=>|:=|==?|:|%3[Dd]|%3[Aa])\s*+(?!//)"
)
_VALUE = re.compile(
    r"""\\+"(?:(?!\\*").)*+|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|\{[^{}"]*+\}"""
    r"""|[|>][+-]?\n(?:[ \t]++[^\n]*+\n?)++|[^\s&;,"'}<]++(?:,[^\s&;,"'}<=:]++(?![^\s&;,"'}<]))*+"""
)


def masked_text(text: str, is_secret: Callable[[str], bool]) -> str:
    """Return ``text`` with its secrets masked; ``is_secret`` judges a name that it assigns to."""
    small = text.lower()
    for form, needles in _FORMS:
        if any(needle in small for needle in needles):
            text = form.sub(rf"\g<1>{MASK}\g<{form.groups}>", text)
    if "basic" in small:
        text = _BASIC.sub(_without_basic, text)

    def without_value(found: re.Match[str]) -> str:
        return f"{found[1]}{MASK}" if is_secret(found["name"]) else found[0]

    named_values = (_OPTION, "-"), (_ELEMENT, "<"), (_PROPERTY, "<value"), (_ATTRIBUTE, "value")
    for named, needle in named_values:
        if needle in small:
            text = named.sub(without_value, text)
    return _without_assigned(text, is_secret)


def _without_basic(found: re.Match[str]) -> str:
    """Mask what has a colon once it is decoded: ``basic authentication`` is no secret."""
    digits = found[2].rstrip("=")
    try:
        decoded = base64.b64decode(digits + "=" * (-len(digits) % 4), altchars=b"-_")
    except ValueError:
        return found[0]
    return f"{found[1]}{MASK}" if b":" in decoded else found[0]


def _without_assigned(text: str, is_secret: Callable[[str], bool]) -> str:
    shown, at = [], 0
    while (name := _ASSIGNED.search(text, at)) is not None:
        shown.append(text[at : name.end()])
        at = name.end()
        value = _VALUE.match(text, at) if is_secret(name[1]) else None
        if value is not None and not text.startswith(MASK, at):
            shown.append(MASK)
            at = value.end()
    return "".join((*shown, text[at:]))
