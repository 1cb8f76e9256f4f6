"""The tokens of applications that have ended are removed from the submitter's cache.

A token is a secret, and of no use once its application is gone. Only the ResourceManager of its
cluster says that it is: a cache has tokens of applications of several clusters, which may live.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.client_files import forget_token, kept_tokens, token_folder

_MOST_ASKED = 100


def forget_ended_tokens(environment: Mapping[str, str], rest: ResourceManagerRest) -> None:
    """Ask for the applications whose tokens are kept, and forget those of this cluster that ended.

    One that the ResourceManager does not know has ended where its token was given for that
    ResourceManager; of a token of an earlier release, which does not say so, it is another's.
    """
    with contextlib.suppress(UnavailableError):  # the next command asks again
        for kept in kept_tokens(token_folder(environment))[:_MOST_ASKED]:
            if kept.resource_managers not in {(), rest.urls}:
                continue
            application = rest.application(kept.application_id)
            is_known = application is not None or bool(kept.resource_managers)
            if is_known and (application is None or not application.is_active):
                forget_token(environment, kept.application_id)
