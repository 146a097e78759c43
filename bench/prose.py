"""Fixed answers for clients that describe the wanted form in prose instead of sending a schema."""

def prose_answer(text: str) -> str:
    return '{"score": 1, "reason": "as asked"}'
