import pytest

from lamina.text.corrections import corrected_values


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("It was 2019, not 2018, that I moved.", ["2018"]),
        ("I moved in 2019, not in 2018.", ["2018"]),
        ("Not 2018 but 2019, sorry.", ["2018"]),
        ("It wasn't Lyon, it was Lille.", ["lyon"]),
        ("Es war 2019, nicht 2018.", ["2018"]),
        ("Nicht in Lyon, sondern in Lille war das.", ["lyon"]),
        ("Fue en 2019, no en 2018.", ["2018"]),
        ("No fue 2018: no en 2018, sino en 2019.", ["2018"]),
        ("C'était en 2019, pas en 2018.", ["2018"]),
        ("不是2018年，是2019年。", ["2018年"]),
        ("2018年ではなく2019年でした。", ["2018年"]),
        ("I am not sure.", []),
        ("That is good, not bad.", []),
        ("No, thanks.", []),
    ],
)
def test_a_correction_names_the_value_that_was_wrong(text: str, wrong: list[str]) -> None:
    assert sorted(corrected_values(text)) == wrong
