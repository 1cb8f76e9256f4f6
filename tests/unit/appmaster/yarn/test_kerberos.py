"""The login by keytab, from the job's configuration."""

from pathlib import Path

import pytest

from homeport.appmaster.yarn.kerberos import KerberosLogin, kerberos_login
from homeport.config.config import Config
from homeport.config.errors import ConfigError

PRINCIPAL, KEYTAB = "yarn.kerberos.principal", "yarn.kerberos.keytab"


def test_without_the_keys_there_is_no_login() -> None:
    """Hadoop's client takes the ticket of kinit."""
    assert kerberos_login(Config({})) is None


def test_principal_and_keytab_make_a_login(tmp_path: Path) -> None:
    """The keytab's path is absolute: the JVM has another folder."""
    (tmp_path / "a.keytab").touch()
    given = {PRINCIPAL: "ada@EXAMPLE.ORG", KEYTAB: str(tmp_path / "a.keytab")}
    assert kerberos_login(Config(given)) == KerberosLogin("ada@EXAMPLE.ORG", given[KEYTAB])


@pytest.mark.parametrize(("present", "absent"), [(PRINCIPAL, KEYTAB), (KEYTAB, PRINCIPAL)])
def test_one_without_the_other_is_refused(present: str, absent: str) -> None:
    """The message names both keys."""
    with pytest.raises(ConfigError, match=f"{present}.*x.*{absent} is not set"):
        kerberos_login(Config({present: "x"}))


def test_a_keytab_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Before anything is written."""
    given = {PRINCIPAL: "ada@EXAMPLE.ORG", KEYTAB: str(tmp_path / "none.keytab")}
    with pytest.raises(ConfigError, match=r"none\.keytab is no file that this user may read"):
        kerberos_login(Config(given))
