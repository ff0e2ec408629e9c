"""One case."""

from dataclasses import dataclass, field


@dataclass
class Case:
    line: str
    # What is done before, by the person: text for `bash -e`, in the project.
    before: str = ""
    # What the person does afterwards, outside of Safepoint, if nothing is put before them: the effect
    # is that of code that the line has left for others to run.
    after: str = ""
    # The kind of effect that it has; that of its module unless said otherwise.
    sees: str = ""
    # Programs without which it cannot be run.
    needs: tuple = ()
    # So many seconds after its end the effect is looked for.
    wait: float = 0.0
    # Whether a process of somebody else's is there, or a terminal.
    victim: bool = False
    terminal: bool = False
    # Whether only root can prepare it.
    root: bool = False
    # Why only the parser's words hold it, and the fence is not meant to.
    words: str = ""
    group: str = field(default="", compare=False)
    number: int = field(default=-1, compare=False)
