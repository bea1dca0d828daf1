"""A question from the command line or the interactive session to the node that it becomes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from types import FrameType

from msgspec import Struct

from objstore.errors import UsageError
from objstore.snapshot import Snapshot
from objstore.store import Store, load
from plumbing.interface.options import Arguments, Option
from porcelain.session.answering import asking
from porcelain.session.answering.answerers import Answerer, OnText, Request
from porcelain.session.answering.asking import Asked
from porcelain.session.answering.extract_answerer import ExtractAnswerer
from porcelain.session.answering.kinds import Answer
from porcelain.session.answering.openai_answerer import DEFAULT_URL, OpenAIAnswerer, key_from_environment
from porcelain.session.answering.pointers import MAX_TITLES, cited_titles
from porcelain.session.tree.change import Added, Session, open_session
from porcelain.session.tree.store import Turn, add_turn

#: How far up earlier answers are looked at for the titles they cite.
_LOOK_BACK = 1000

OPTIONS = (
    Option(
        "--answerer",
        "answerer",
        "extract|openai",
        "what answers: quotations (extract, the default), or a model",
        "choice",
        choices=("extract", "openai"),
    ),
    Option("--model", "model", "NAME", "the model, for openai", "text"),
    Option("--url", "url", "URL", f"where the model is, for openai (default: {DEFAULT_URL})", "text"),
    Option(
        "--retrieval-keywords",
        "retrieval_keywords",
        "WORDS",
        "further words to look for in the sources",
        "text",
        default="",
    ),
    Option("--anew", "anew", help="ask again although an answer is kept"),
)


class Asking(Struct, frozen=True):
    """What questions are answered by, and how."""

    answerer: Answerer
    options: asking.Options
    streams: bool


def asking_of(command: str, arguments: Arguments, env: Mapping[str, str]) -> Asking:
    """What the options of a command line ask for. The key of an endpoint comes from the environment only."""
    options = asking.Options(retrieval_keywords=arguments.retrieval_keywords, refresh=arguments.anew)
    if arguments.answerer != "openai":
        for name in ("model", "url"):
            if getattr(arguments, name) is not None:
                raise UsageError(
                    f"{command}: --{name} is for a model",
                    hint=f"objstore {command} --answerer openai --{name} ...",
                )
        return Asking(ExtractAnswerer(), options, streams=False)
    url = arguments.url if arguments.url is not None else DEFAULT_URL
    answerer = OpenAIAnswerer(arguments.model or "", url=url, key=key_from_environment(env))
    return Asking(answerer, options, streams=True)


class _Interrupts:
    """Ctrl-C while a turn runs: it stops the turn until its answer is whole; from then on the turn lands, and ``late``
    says that somebody wanted to stop it."""

    def __init__(self) -> None:
        self.late = False
        self._whole = False
        self._restore: Callable[[], object] = lambda: None

    def __enter__(self) -> _Interrupts:
        if threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGINT, self._interrupted)
            self._restore = lambda: signal.signal(signal.SIGINT, before)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if not self._whole:
            raise KeyboardInterrupt
        self.late = True

    def whole(self) -> None:
        """The answer is there: what follows is writing it down."""
        self._whole = True


class _Reporting:
    """An answerer that says when its answer is whole."""

    def __init__(self, answerer: Answerer, whole: Callable[[], None]) -> None:
        self._answerer = answerer
        self._whole = whole

    def profile(self) -> dict[str, str]:
        return self._answerer.profile()

    def answer(self, request: Request, on_text: OnText | None = None) -> str:
        text = self._answerer.answer(request, on_text)
        self._whole()
        return text


class Landed(Struct, frozen=True):
    """A turn that was added, its answer, and whether Ctrl-C came too late to stop it."""

    asked: Asked
    added: Added
    late: bool


def ask_turn(
    store: Store, sid: str, question: str, *, parent: int, ask: Asking, on_text: OnText | None = None
) -> Landed:
    """Answer a question under node ``parent`` and add the turn.

    Nothing is written unless an answer came; the answer is stored first, then node, event and refs at once. Raises
    what ``asking.ask`` and ``store.add_turn`` raise, and ``KeyboardInterrupt`` with nothing written.
    """
    question = asking.prepared_question(question)
    with store.snapshot() as view:
        session = open_session(view, sid)
        session.node(view, parent)
        above = earlier_answers(view, session, parent)
    with _Interrupts() as interrupts:
        asked = asking.ask(
            store,
            question,
            ancestors=above,
            answerer=_Reporting(ask.answerer, interrupts.whole),
            options=ask.options,
            on_text=on_text,
        )
        interrupts.whole()
        turn = Turn(
            answer=asked.answer_id,
            audit_mode=asked.audit_mode,
            cache_key=asked.cache_key,
            parent=parent,
            question=asked.question,
        )
        added = add_turn(store, sid, turn)
        return Landed(asked, added, interrupts.late)


def earlier_answers(view: Snapshot, session: Session, seq: int) -> list[str]:
    """The texts of the answers of node ``seq`` and those above it that cite titles, nearest first, as many as it takes
    to find all titles that are used."""
    texts: list[str] = []
    titles: set[str] = set()
    at: int | None = seq
    for _ in range(_LOOK_BACK):
        if at is None or len(titles) >= MAX_TITLES:
            break
        answer = node_answer(view, session, at)
        if answer is not None and (cited := cited_titles([answer.text])):
            texts.append(answer.text)
            titles.update(cited)
        at = session.index.parent(at)
    return texts


def node_answer(view: Snapshot, session: Session, seq: int) -> Answer | None:
    """The answer that a node shows; None for the root, and where the answer is not here."""
    answer_id = session.answer(view, seq)
    if answer_id is None or view.kind(bytes.fromhex(answer_id)) != "answer":
        return None
    answer: Answer = load(view, bytes.fromhex(answer_id), "answer")
    return answer
