"""The command line: parse, call, print. Heavy imports wait until a command runs.

Exit codes: 0 all is well; 1 a bug or an unexpected failure; 2 wrong usage, configuration or unreadable
input; 3 finished, but with bad rows or items that no judge labelled; 4 the judge is unusable or the run failed;
5 the store is unusable; 6 the gate failed; 7 it is undecided; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from steelyard import __version__
from steelyard.cli import (
    accounts,
    audit,
    batch,
    calibrate,
    comment,
    compare,
    experiment,
    export,
    gate,
    importing,
    judges,
    labelling,
    mcp,
    models,
    prompts,
    read,
    results,
    rubric,
    run,
    runs,
    serve,
    sets,
    view,
    worker,
)
from steelyard.errors import SteelyardError

USAGE = 2
INTERRUPTED = 130
# Newer versions of typer carry their own click; this is the class of whichever is in use.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="steelyard",
    help="杆秤 Steelyard evaluates what language models say, item by item, with evidence.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
run.register(app)
worker.register(app)
read.register(app)
importing.register(app)
results.register(app)
audit.register(app)
calibrate.register(app)
compare.register(app)
gate.register(app)
comment.register(app)
experiment.register(app)
labelling.register(app)
export.register(app)
view.register(app)
serve.register(app)
mcp.register(app)
app.add_typer(runs.app, name="runs")
app.add_typer(sets.app, name="sets")
app.add_typer(batch.app, name="batch")
app.add_typer(prompts.app, name="prompts")
app.add_typer(rubric.app, name="rubric")
app.add_typer(judges.app, name="judges")
app.add_typer(models.app, name="models")
app.add_typer(accounts.users, name="users")
app.add_typer(accounts.tokens, name="tokens")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"steelyard {__version__}")
        raise typer.Exit


@app.callback()
def _global(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
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
        code = app(prog_name="steelyard", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            _ignore_reader()
        raise
    except UsageError as error:
        _explain_usage(error)
        sys.exit(USAGE)
    except SteelyardError as error:
        if debug:
            raise
        _complain(str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _complain("interrupted")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _ignore_reader()
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.filename is not None:
            _complain(f"{error.filename}: {error.strerror}")
            sys.exit(USAGE)
        _complain(f"unexpected {type(error).__name__}: {error}; please report it with the output of --debug")
        sys.exit(1)


def _ignore_reader() -> NoReturn:
    """The reader of a pipe (head, less) has closed it: discard what is buffered, so that nothing fails at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def _explain_usage(error: Any) -> None:
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    else:
        command = error.ctx.command_path if error.ctx else "steelyard"
        _complain(f"{error.format_message()} (see {command} --help)")


def _complain(problem: str) -> None:
    print(f"steelyard: {' '.join(problem.split())}", file=sys.stderr)
