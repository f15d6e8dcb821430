"""Which files are pictures, sound, film or documents, by how their names end."""

from __future__ import annotations

_KINDS: dict[str, dict[str, str]] = {
    "image": {
        "png": "image/png",
        "jpg": "image/jpeg",
        "jpeg": "image/jpeg",
        "webp": "image/webp",
        "gif": "image/gif",
        "heic": "image/heic",
        "heif": "image/heif",
    },
    "video": {
        "mp4": "video/mp4",
        "mpeg": "video/mpeg",
        "mpg": "video/mpeg",
        "mov": "video/quicktime",
        "avi": "video/x-msvideo",
        "flv": "video/x-flv",
        "webm": "video/webm",
        "wmv": "video/x-ms-wmv",
        "3gpp": "video/3gpp",
    },
    "audio": {
        "wav": "audio/wav",
        "mp3": "audio/mpeg",
        "aiff": "audio/aiff",
        "aac": "audio/aac",
        "ogg": "audio/ogg",
        "flac": "audio/flac",
    },
    "file": {
        "pdf": "application/pdf",
        "ppt": "application/vnd.ms-powerpoint",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    },
}
_BY_ENDING = {ending: (kind, mime) for kind, endings in _KINDS.items() for ending, mime in endings.items()}


def media_type(path: str) -> tuple[str, str] | None:
    """(type of content block, MIME type) of a file that is no text; None for one that may be."""
    return _BY_ENDING.get(path.rpartition("/")[2].rpartition(".")[2].lower())
