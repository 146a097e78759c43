"""The command line: parse, call, print. Heavy imports wait until a command runs.

Exit codes: 0 all is well; 1 a bug or an unexpected failure; 2 wrong usage, configuration or unreadable
input; 3 finished, but with bad rows or items that no judge labelled; 4 the judge is unusable; 5 the store
is; 130 interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from steelyard import __version__
from steelyard.cli import judges, prompts, read, results, run
from steelyard.errors import SteelyardError

GAPS = 3
INTERRUPTED = 130

app = typer.Typer(
    name="steelyard",
    help="杆秤 Steelyard weighs what language models say: labelled items, evidence, exact scores.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
run.register(app)
read.register(app)
results.register(app)
app.add_typer(prompts.app, name="prompts")
app.add_typer(judges.app, name="judges")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"steelyard {__version__}")
        raise typer.Exit


@app.callback()
def _global(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line. A user's mistake is one line on standard error; a traceback needs --debug."""
    debug = "--debug" in sys.argv
    if debug:
        # Accepted anywhere, as people add it to the end of the command that just failed.
        sys.argv.remove("--debug")
    try:
        app()
    except SteelyardError as error:
        if debug:
            raise
        print(f"steelyard: {_one_line(str(error))}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("steelyard: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        if debug:
            raise
        print(
            f"steelyard: unexpected {type(error).__name__}: {_one_line(str(error))}; "
            "please report it with the output of --debug",
            file=sys.stderr,
        )
        sys.exit(1)


def _one_line(text: str) -> str:
    return " ".join(text.split())
