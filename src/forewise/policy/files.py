"""Reading policies back. May import: exceptions, storage, its siblings."""

from __future__ import annotations

import os

from forewise.exceptions import StorageError
from forewise.policy.base import Policy
from forewise.policy.direct import DirectPolicy
from forewise.policy.packing import KIND, VERSION, register, unpack
from forewise.policy.scenario import ScenarioPolicy
from forewise.storage import read_folder

register(DirectPolicy)
register(ScenarioPolicy)


def load_policy(folder: str | os.PathLike[str]) -> Policy:
    """Read a policy that `Policy.save` wrote.

    Nothing in the folder is run; whatever is damaged, cut short, foreign or too new is a
    `StorageError`.
    """
    _, content = read_folder(folder, kind=KIND, versions=[VERSION])
    policy = unpack(content.get("policy"))
    if not isinstance(policy, Policy):
        raise StorageError(f"{folder} holds no policy, but a {type(policy).__name__}")
    return policy
