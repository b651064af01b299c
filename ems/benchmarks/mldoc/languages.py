"""The languages of the Reuters corpora by our codes, as the folders name them."""

LANGUAGES = {
    "en": "english",
    "de": "german",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "ja": "japanese",
    "ru": "russian",
    "zh": "chinese",
}
