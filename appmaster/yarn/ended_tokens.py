"""Removes the tokens of ended applications from the submitter's cache.

A token is a secret without use once its application has ended. Only the ResourceManager of the
application's cluster knows that: a cache has tokens of several clusters.
"""

import contextlib
from collections.abc import Mapping

from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.client_files import forget_token, kept_tokens, token_folder

_MOST_ASKED = 100


def forget_ended_tokens(environment: Mapping[str, str], rest: ResourceManagerRest) -> None:
    """Look up the applications of the kept tokens, and forget tokens of ended ones.

    A token names the ResourceManagers of its cluster. An application that they do not know has
    ended. A token of an earlier release names none: its application may be another cluster's.
    """
    with contextlib.suppress(UnavailableError):  # the next command asks again
        for kept in kept_tokens(token_folder(environment))[:_MOST_ASKED]:
            if kept.resource_managers not in {(), rest.urls}:
                continue
            application = rest.application(kept.application_id)
            is_known = application is not None or bool(kept.resource_managers)
            if is_known and (application is None or not application.is_active):
                forget_token(environment, kept.application_id)
