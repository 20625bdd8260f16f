"""Write the recorded vectors of the packaged model anew, with torch: `python -m tests.support.record_vectors`."""

import numpy as np

from lamina.models.onnx.agreement import RECORDED_FILE
from lamina.models.onnx.folder import read_folder
from lamina.models.onnx.graph_files import origin_of
from lamina.models.packaged import model_folder
from lamina.models.sentence_transformers import SentenceTransformerModel
from lamina.settings.models import PACKAGED_MODEL, SentenceTransformersSettings

TEXTS = (
    "",
    "tea",
    "?!",
    "🎉🎊",
    "We chose Postgres because it is boring and proven.",
    "Café Zoë serves crème brûlée to Łukasz and Ærø.",
    "мой кот любит рыбу",
    "今日は成語しりとりをした",
    "שלום לכולם, مرحبا بالجميع, नमस्ते",
    "[CLS] [SEP] [MASK] [PAD] [UNK]",
    "x" * 300,
    "SELECT id, body FROM notes WHERE created_at > now() - interval '7 days' ORDER BY id;\n" * 3,
    " ".join(f"Item {number} stands in room {number * 13}." for number in range(10)),
    " ".join(f"Sentence {number} tells of the price of steel in {1900 + number}." for number in range(100)),
)


def main() -> None:
    model = SentenceTransformerModel(SentenceTransformersSettings(precision="float32"), "cpu")
    origin = origin_of(read_folder(model_folder(PACKAGED_MODEL)))
    np.savez_compressed(RECORDED_FILE, origin=np.array(origin), texts=np.array(TEXTS), vectors=model.encode(TEXTS))


if __name__ == "__main__":
    main()
