"""Rows as people have them, read and written in one call, for the tests of samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import strategies as st

from steelyard.errors import InputError
from steelyard.records import DialogueSample, RagSample, Sample
from steelyard.samples import read_samples, sample_from

ROW = {"id": "a", "question": "大灯是否可以贴膜", "references": ["会变暗。"], "answer": "不建议。"}
TRAY = (
    r'[["理想L9座椅配置 第二排小桌板 标配\",\"理想L9的第二排右侧座椅是配备了小桌板和腿托。\",'
    r"\"第二排右侧座椅配备小桌板。可以通过以下方式打开：\\n① 按压小桌板开关，解锁小桌板。 "
    r'\\n② 向下翻开小桌板至使用位置。可在小桌板上临时办公、用餐等。 "]]'
)
SEED_DIALOGUE = {
    "system_prompt": "你是一个狂躁的面试官。",
    "待评估对话": [
        {"prompt": "你好", "answer": "啦啦啦", "评估细则": ["以一句歌词作为开头 | 内容约束", "自我介绍 | 动作约束"]},
        {"prompt": "嗯", "answer": "", "评估细则": "风格是狂躁的 | 风格约束\n()中含有表情 | 内容约束"},
    ],
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


def rag(**row: object) -> RagSample:
    sample = sample_from({"question": "q", "answer": "a"} | row, "rag")
    assert isinstance(sample, RagSample)
    return sample


def dialogue(**row: object) -> DialogueSample:
    sample = sample_from(row, "dialogue")
    assert isinstance(sample, DialogueSample)
    return sample


def bad(row: object, kind: str = "rag", **fields: str) -> InputError:
    with pytest.raises(InputError) as caught:
        sample_from(row, kind, fields=fields)  # type: ignore[arg-type]
    return caught.value


def write(path: Path, *rows: object) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(*paths: Path | str, kind: str = "rag", **options: object) -> list[Sample | InputError]:
    return list(read_samples(list(paths), kind, **options))  # type: ignore[arg-type]


def good(rows: list[Sample | InputError]) -> list[Sample]:
    assert not [str(row) for row in rows if isinstance(row, InputError)]
    return [row for row in rows if not isinstance(row, InputError)]
