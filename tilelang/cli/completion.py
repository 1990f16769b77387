"""`tilelang completion bash|zsh|fish`: the script that completes the command in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the completion script of a shell.

    \b
    bash:  tilelang completion bash > ~/.local/share/bash-completion/completions/tilelang
    zsh:   tilelang completion zsh > ~/.zfunc/_tilelang
    fish:  tilelang completion fish > ~/.config/fish/completions/tilelang.fish
    """
    from tilelang.cli.dispatch import tilelang

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(tilelang, {}, "tilelang", "_TILELANG_COMPLETE").source())
    return 0
