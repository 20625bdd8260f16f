import base64
import json
import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.text.opaque import MIN_CHARS, language_spans, without_opaque

RANDOM = random.Random(77)  # noqa: S311 - the same bytes each time
BYTES = RANDOM.randbytes(30_000)


def lines(size: int) -> Iterator[bytes]:
    return (BYTES[start : start + size] for start in range(0, len(BYTES), size))


def shown(row: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)


OPAQUE = {
    "base 64": base64.b64encode(BYTES).decode(),
    "base 64 in lines": base64.encodebytes(BYTES).decode(),
    "base 64 quoted": "> " + base64.encodebytes(BYTES).decode().strip().replace("\n", "\n> "),
    "base 64 for URLs": base64.urlsafe_b64encode(BYTES).decode(),
    "base 85": base64.b85encode(BYTES).decode(),
    "base 32": base64.b32encode(BYTES).decode(),
    "hexadecimal": BYTES.hex(),
    "hexadecimal in lines": "\n".join(row.hex() for row in lines(30)),
    "hexdump": "\n".join(f"{16 * place:08x}  {row.hex(' ')}  |{shown(row)}|" for place, row in enumerate(lines(16))),
    "xxd": "\n".join(f"{16 * place:08x}: {row.hex(' ', 2)}  {shown(row)}" for place, row in enumerate(lines(16))),
    "an array in C": ",\n".join(", ".join(f"0x{byte:02x}" for byte in row) for row in lines(12)),
    "a list of bytes": json.dumps(list(BYTES)),
    "a vector": json.dumps([RANDOM.gauss(0, 1) for _ in range(1_000)]),
    "per cent": "".join(f"%{byte:02X}" for byte in BYTES),
    "one letter": "x" * 100_000,
    "laughter": "haha " * 5_000,
    "dots": "." * 50_000,
    "one emoji": "\U0001f600" * 50_000,
    "stacked marks": ("e" + "\u0301" * 40) * 500,
    "bases of a gene": "".join(RANDOM.choice("ACGT") for _ in range(20_000)),
    "bytes read as UTF-8": BYTES.decode("utf-8", "replace"),
    "minified code": "".join(
        f"function {a}(e,t){{return e.{b}=t,void 0===n?r({a},t):e[t]&&i(e,{n})}}"
        for n, (a, b) in enumerate(RANDOM.choices([("o", "call"), ("s", "x"), ("u", "length")], k=500))
    ),
}
LANGUAGE = {
    "English": "The ship leaves on Friday, because nobody found the barometer behind the door. " * 60,
    "Thai": "สวัสดีครับผมชื่อสมชายและผมชอบกินข้าวมันไก่กับเพื่อนทุกวันจันทร์ที่ตลาดใหม่" * 60,
    "Chinese": "我们决定在星期五发布新版本因为没有人在办公室门后找到气压计" * 100,
    "Japanese": "今日は成語しりとりをしたので疲れましたが楽しかったです" * 100,
    "Khmer": "ខ្ញុំចូលចិត្តញ៉ាំបាយជាមួយមិត្តភក្តិរបស់ខ្ញុំនៅទីក្រុងភ្នំពេញ" * 60,
    "Lao": "ຂ້ອຍມັກກິນເຂົ້າຫນຽວກັບຫມູ່ເພື່ອນ" * 60,
    "Burmese": "ကျွန်တော်ထမင်းစားချင်ပါတယ်မိတ်ဆွေများနှင့်" * 60,
    "Tibetan": "བོད་ཡིག་ནི་བོད་མིའི་སྐད་ཡིག་ཡིན།" * 60,
    "Korean without blanks": "나는오늘친구와함께밥을먹었습니다그리고집에갔다" * 60,
    "Hindi": "मुझे मूंगफली से एलर्जी है और मैं दिल्ली में रहता हूँ " * 60,
    "Hebrew": "שלום עולם אני גר בירושלים ואוהב קפה " * 60,
    "Arabic": "مرحبا بالعالم أنا أعيش في القاهرة " * 60,
    "Amharic": "እኔ በአዲስ አበባ እኖራለሁ " * 60,
    "long words": "Donaudampfschifffahrtsgesellschaftskapitänsmütze " * 60,
    "compact JSON": json.dumps([{"id": n, "city": "Graz", "note": "sunny"} for n in range(300)], separators=(",", ":")),
    "a log": "\n".join(f"2026-01-01T00:00:{n % 60:02}.123Z INFO worker[{n}] fetched in {n} ms" for n in range(300)),
    "a table": "\n".join(f"|SK-{n}|{n * 1.5}|blue|" for n in range(600)),
    "paths": "\n".join(f"/usr/lib/python3/dist-packages/module_{n}/__init__.py" for n in range(300)),
    "code": "\n".join(
        f"    def area_{n}(self, x: int) -> int:\n        return self.width * x + {n}\n" for n in range(200)
    ),
    "hashes of commits": "\n".join(row.hex() for row in lines(20)),
    "some numbers": ", ".join(map(str, range(1_000))),
}


@pytest.mark.parametrize("kind", OPAQUE)
def test_what_is_no_language_is_recognised(kind: str) -> None:
    text = OPAQUE[kind]

    assert sum(end - start for start, end in language_spans(text)) < 0.03 * len(text) + MIN_CHARS


@pytest.mark.parametrize("kind", LANGUAGE)
def test_language_in_any_script_stays_whole(kind: str) -> None:
    assert language_spans(LANGUAGE[kind]) == [(0, len(LANGUAGE[kind]))]


@pytest.mark.parametrize("kind", OPAQUE)
def test_the_text_around_it_stays(kind: str) -> None:
    before, after = (
        "We decided to ship on Fridays, as this shows:\n\n",
        "\n\nNobody found the barometer behind the door.",
    )

    left = without_opaque(f"{before}{OPAQUE[kind]}{after}")

    assert left.startswith(before.strip()[:40])
    assert left.endswith(after.strip()[-30:])


@given(st.text(max_size=MIN_CHARS - 1))
def test_a_short_text_is_language_whatever_it_is(text: str) -> None:
    assert without_opaque(text) == text


@given(st.lists(st.sampled_from([*OPAQUE.values(), *LANGUAGE.values()]).map(lambda text: text[:3_000]), max_size=5))
def test_stretches_are_in_order_and_within_the_text(texts: list[str]) -> None:
    text = "\n".join(texts)

    places = [place for span in language_spans(text) for place in span]

    assert places == sorted(places)
    assert all(0 <= place <= len(text) for place in places)
