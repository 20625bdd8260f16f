"""Places that are known as such however they are written."""

from functools import cache
from zoneinfo import available_timezones

from lamina.text.english import listed

_REGIONS = ("Africa/", "America/", "Asia/", "Europe/", "Australia/", "Pacific/", "Atlantic/", "Indian/")
# Ordinary words among the names of time zones.
_NO_CITIES = listed("center north south west easter christmas current general east reunion")
_COUNTRIES = """
    afghanistan albania algeria andorra angola argentina armenia australia austria azerbaijan bahrain bangladesh
    barbados belarus belgium belize benin bhutan bolivia botswana brazil brunei bulgaria burundi cambodia cameroon
    canada chile china colombia croatia cuba cyprus czechia denmark ecuador egypt england eritrea estonia ethiopia
    fiji finland france gabon germany ghana greece greenland guatemala guinea guyana haiti honduras hungary iceland
    india indonesia iran iraq ireland israel italy jamaica japan kazakhstan kenya kosovo kuwait kyrgyzstan laos
    latvia lebanon liberia libya liechtenstein lithuania luxembourg madagascar malawi malaysia maldives mali malta
    mauritania mauritius mexico moldova monaco mongolia montenegro morocco mozambique myanmar namibia nepal
    nicaragua niger nigeria norway oman pakistan panama paraguay peru philippines poland portugal qatar romania
    russia rwanda scotland senegal serbia seychelles singapore slovakia slovenia somalia spain sudan suriname
    sweden switzerland syria taiwan tajikistan tanzania thailand togo tunisia turkmenistan uganda ukraine uruguay
    uzbekistan venezuela vietnam wales yemen zambia zimbabwe
"""
_COUNTRIES_OF_WORDS = (
    "costa rica",
    "el salvador",
    "new zealand",
    "north macedonia",
    "northern ireland",
    "saudi arabia",
    "sierra leone",
    "south africa",
    "south korea",
    "sri lanka",
    "hague",
    "netherlands",
    "uk",
    "united kingdom",
    "us",
    "usa",
    "united states",
    "uae",
    "united arab emirates",
    "czech republic",
)


@cache
def known_places() -> frozenset[str]:
    """Return the cities of the time zones and the countries, in small letters, without an article."""
    named = {zone.rsplit("/", 1)[1] for zone in available_timezones() if zone.startswith(_REGIONS)}
    cities = frozenset(name.replace("_", " ").casefold() for name in named) - _NO_CITIES
    return cities | listed(_COUNTRIES) | frozenset(_COUNTRIES_OF_WORDS)
