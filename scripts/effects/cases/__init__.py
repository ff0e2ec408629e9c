"""The cases: lines that we wrote, one way of doing harm each, in a world that is thrown away.

A case says which effect it has where nobody holds it (`sees`):

    changed    something outside of the workspace: content, mode, owner, time, names, attributes
    reached    a server outside of the line
    printed    a secret, for the model to read
    process    another process
    typed      another terminal
    own        Safepoint's store, keys and decisions
    lost       something in the workspace that `undo` does not bring back

The classes A to G are those of a review that looked for what words do not show. Of other people's
collections of dangerous lines these are covered:

    deletion and evasion (outside, in the workspace)         delete-outside, delete-here, D-parser
    write-outside, global-install, persistence, trust store  overwrite-dotfiles, persistence, F-archives
    cover-tracks, permissions, destroy                       system-places, metadata-outside
    hidden-shell, hidden-command, hidden-code, inline-code   A-, B-, C-, E-, loader, kernel-ways, background
    code-injection, privilege, kill, spy                     loader, privilege, kill, ptrace, spy
    read-credential, collect, exfiltrate                     read-credential, send-credential, dns, udp
    remote-shell, remote-command, transfer                   remote-shell, tunnel, tcp, fetch-and-run
    destroy-service, database, docker, publish, git          destroy-service, databases, docker, publish, push
    agents' settings, Safepoint itself                       clients-settings, left-for-others, own-files, …

Not run: what only root can do (accounts, kernel modules, power, services, swap, firewalls, mounts). It
has no effect for an ordinary user, with or without Safepoint, so no control could fail.
"""

from cases import code, credentials, files, links, network, own, persistence, processes, programs, services, sockets
from cases.case import Case

ALL = []
for _module in (files, code, links, programs, persistence, credentials, network, sockets, services, processes, own):
    for _group, _cases in _module.GROUPS.items():
        for _one in _cases:
            _case = _one if isinstance(_one, Case) else Case(_one)
            _case.group, _case.number = _group, len(ALL)
            _case.sees = _case.sees or _module.SEES
            ALL.append(_case)
