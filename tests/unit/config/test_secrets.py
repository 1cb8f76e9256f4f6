"""Secrets of the configuration."""

from __future__ import annotations

import pytest

from homeport.config.config import Config, masked
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.secret_names import has_secret, is_secret, shown_value, warnings_of_overrides
from homeport.config.secret_values import MASK
from homeport.config.settings.sections import SystemConfig, TaskConfig

HIDDEN_KEYS = """
sensitive.anything SENSITIVE.ANYTHING systems.kafka.consumer.sasl.jaas.config
systems.kafka.producer.sasl.password systems.kafka.consumer.ssl.key.pem
systems.kafka.consumer.ssl.key.password systems.kafka.consumer.ssl.keystore.key
systems.kafka.consumer.ssl.keystore.password systems.kafka.consumer.ssl.truststore.password
systems.kafka.consumer.sasl.oauthbearer.client.secret
systems.kafka.consumer.sasl.oauthbearer.config task.api.Token task.api_private-key
task.cloud.credentials task.cloud.credential
task.spark.conf.spark.hadoop.fs.azure.account.key.acct.blob.core.windows.net
task.spark.conf.spark.hadoop.fs.azure.account.oauth2.client.secret
task.spark.conf.spark.hadoop.fs.azure.sas.container.acct.blob.core.windows.net
task.spark.conf.spark.hadoop.fs.s3a.access.key task.spark.conf.spark.hadoop.fs.s3a.secret.key
task.spark.conf.spark.hadoop.fs.s3a.session.token
task.spark.conf.spark.hadoop.fs.s3a.encryption.key
task.spark.conf.spark.hadoop.fs.s3a.server-side-encryption.key
task.spark.conf.spark.hadoop.fs.s3a.bucket.b.access.key task.spark.conf.spark.authenticate.secret
task.spark.conf.spark.ssl.keyPassword task.spark.conf.spark.hadoop.ssl.keystore.pass
task.spark.conf.spark.hadoop.fs.gs.auth.service.account.private.key
schema.registry.basic.auth.user.info schema.registry.userInfo my.api.key my.api-key my.apikey
my.apiKey my.apikey2 my.API_KEYS my.awsAccessKeyId my.db.pwd my.dbPwd my.db.pass my.dbpass
my.ssh.passphrase my.pass-phrase my.signing.key my.refreshToken my.jwt my.http.authorization
my.bearer my.sentry.dsn my.connection-string my.clientSecret mq.pw ldap.bind.dn.pw ldap.bindpw
db.pin hsm.pin1 hsm-pin sim.puk user.cred user.creds login.otp my.totp my.session.cookie
my.signature my.tls.key my.client_key my.rsa-key alert.webhook.url db.passwort db.mot_de_passe
db.motDePasse db.contrasena my.geheimnis wifi.psk schema.registry.basic.auth
"""
SHOWN_KEYS = """
job.name task.inputs insensitive.x key.serde stores.x.key.serde stores.account.key.serde
stores.api.key.serde stores.tokens.changelog stores.passwords.factory systems.kafka.samza.key.serde
systems.kafka.streams.access.samza.key.serde systems.kafka.consumer.max.poll.records
systems.kafka.consumer.max.poll.interval.ms systems.kafka.consumer.key.deserializer
systems.kafka.consumer.bootstrap.servers systems.kafka.consumer.sasl.mechanism
systems.kafka.consumer.sasl.username systems.kafka.consumer.security.protocol
systems.kafka.consumer.ssl.ca.location serializers.registry.json.class
serializers.registry.token.class task.spark.conf.spark.master
task.spark.conf.spark.hadoop.fs.s3a.endpoint task.spark.conf.spark.hadoop.fs.s3a.path.style.access
my.tokenizer my.bypass my.compass my.keyboard my.primary.key my.spin my.pinned my.cookbook my.sigma
my.tls.key.path my.keys my.token.refresh.ms cluster-manager.container.lease.ms
"""


@pytest.mark.parametrize("key", HIDDEN_KEYS.split())
def test_a_key_with_the_name_of_a_secret_is_secret(key: str) -> None:
    """Passwords, secrets, tokens, keys of clouds and JAAS texts are secret in whatever spelling."""
    assert is_secret(key)
    assert is_secret(key.upper())


@pytest.mark.parametrize("key", ["", *SHOWN_KEYS.split()])
def test_other_keys_are_shown(key: str) -> None:
    """What names no secret is shown; ``sensitive.`` counts at the beginning only."""
    assert not is_secret(key)


def test_no_declared_key_counts_as_a_secret() -> None:
    """Every declared key is shown, but those in whose place a secret may stand by mistake."""
    assert [key.name for key in keys.ALL if is_secret(key.name)] == [
        "job.coordinator.zk.auth.password",
        "job.coordinator.zk.tls.key.password",
        "cluster-manager.jobcoordinator.tokens.read",
        "cluster-manager.jobcoordinator.tokens.operate",
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("https://user:hunter2@host:80/p?q=1#f", f"https://user:{MASK}@host:80/p?q=1#f"),
        ("https://:hunter2@host", f"https://:{MASK}@host"),
        ("https://user:hun@ter2@host", f"https://user:{MASK}@host"),
        ("http://a:hunter2@h:1,http://b:hunter2@h:2", f"http://a:{MASK}@h:1,http://b:{MASK}@h:2"),
        ("jdbc:x://h/db?user=me&password=hunter2", f"jdbc:x://h/db?user=me&password={MASK}"),
        ("jdbc:x://h/db?password=hunter2&ssl=true", f"jdbc:x://h/db?password={MASK}&ssl=true"),
        ("-Xmx1g -Djavax.trustStorePassword=hunter2 -Da=b", None),
        ('X required username="me" password="hunter2";', None),
        ("AccountName=me;AccountKey=hunter2==;Suffix=x", None),
        ('{"user": "me", "password": "hun\\"ter2", "n": 1}', None),
        ("{'api_key': 'hunter2'}", None),
    ],
)
def test_a_secret_inside_a_value_is_masked(value: str, shown: str | None) -> None:
    """A URL's password, and what is assigned to a secret's name, whatever the key is called."""
    masked_value = shown_value("my.value", value)
    assert shown is None or masked_value == shown
    assert "hunter2" not in masked_value
    assert "ter2" not in masked_value
    assert MASK in masked_value
    assert has_secret("my.value", value)
    error = ConfigError("my.value", value, "it is bad", "mend it")
    assert "ter2" not in str(error)
    assert shown_value("my.value", masked_value) == masked_value


@pytest.mark.parametrize(
    "value",
    [
        "",
        "http://host:8080/path@x",
        "abfss://container@account.dfs.core.windows.net/p",
        "ssh://git@host/r",
        "kafka.a,kafka.b",
        "h1:9092,h2:9092",
        "my.module:Class",
        '{"type": "record", "fields": [{"name": "password", "type": "string"}]}',
        "-Xmx1g -Da=b",
        "token",
        "token:",
        "secrets://vault/path",
        "=:=:==",
        "basic authentication",
        "Basic auth is on",
        "basic words",
        "the bearer token is missing",
        "bearer authentication",
        "mailto:bob@x.org",
        "@scope/package@1.0",
        "http://a:8080/x,http://b:8080/y@z",
        "http://[::1]:8080/x@y",
        "git@host:a/b.git",
        "10:00@20",
        "https://me@host/x",
        "s3a://a-bucket-with-a-long-name@x/y",
        "a=b,c=d,e",
        "<property><name>db.user</name><value>me</value></property>",
        "SG.1",
        "<name>x</name>",
        "-----BEGIN CERTIFICATE-----\\nabc\\n-----END CERTIFICATE-----",
    ],
)
def test_a_value_without_a_secret_is_shown_as_it_is(value: str) -> None:
    """Hosts, ports, user names alone, references and schemas stay."""
    assert shown_value("my.value", value) == value
    assert not has_secret("my.value", value)


SECRET_TEXTS = [
    "Authorization: Basic aHVudGVyMjpodW50ZXIy",
    "Authorization: Basic aHVudGVyMjpodW50ZXIy, Accept: x",
    "Authorization: Bearer hunter2.def",
    "Authorization=Token hunter2",
    "Proxy-Authorization: Negotiate hunter2hunter2==",
    '{"Authorization": "Bearer hunter2"}',
    '{\\"Authorization\\": \\"Bearer hunter2\\"}',
    "Bearer hunter2.def-ghi",
    "basic aHVudGVyMjpodW50ZXIy",
    "X-Api-Key: hunter2",
    "Cookie: session=hunter2; b=hunter2",
    "jdbc:oracle:thin:scott/hunter2@//h:1521/x",
    'jdbc:oracle:thin:scott/"hun/ter2"@h:1521:x',
    "scott/hunter2@db1",
    "user:hunter2@tcp(localhost:3306)/db",
    "jdbc:sqlserver://h;user=sa;password={hunter2; x};x=y",
    "--password hunter2",
    "-x --db-password 'hunter2 x' -y",
    "-password hunter2",
    "curl -u me:hunter2 http://x",
    "--user=me:hunter2",
    "machine h login u password hunter2",
    "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n",
    "-----BEGIN RSA PRIVATE KEY-----\\nhunter2",
    "-----BEGIN OPENSSH PRIVATE KEY-----hunter2",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----hunter2",
    "https://a.blob/x?sv=2020&sig=hunter2",
    "https://a/x?X-Amz-Signature=hunter2&X-Amz-Credential=hunter2",
    "https://user:hun/ter2@host/x",
    "https://user:hun?ter2@host/x",
    "https://user:hun#ter2@host/x",
    "mongodb+srv://u:hunter2@h/db",
    "https://ghp_hunter2hunter2hunter2@host/x",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.hunter2_abc",
    "<password>hunter2</password>",
    '<ns:password type="a">hunter2</ns:password>',
    '<property name="db.password" value="hunter2"/>',
    '{"a": "{\\"password\\": \\"hunter2\\"}"}',
    "password => hunter2",
    "password%3Dhunter2",
    "pw: hunter2",
    "PIN=hunter2",
    'Authorization: Digest username="me", uri="/", response="hunter2"',
    'Authorization: OAuth realm="x", oauth_token="hunter2", oauth_signature="hunter2"',
    "passwords=hunter1,hunter2",
    "user=me,password=hun,ter2,db=x",
    "https://hunter2hunter2hunter2@host/x",
    "https%3A%2F%2Fme%3Ahunter2%40host%2Fx",
    "https://hooks.slack.com/services/T0/B0/hunter2",
    "https://discord.com/api/webhooks/1/hunter2",
    "https://api.telegram.org/bot1:hunter2/getMe",
    "<property><name>db.password</name><value>hunter2</value></property>",
    "<property>\n <name> db.password </name>\n <value>hunter2</value>\n</property>",
    "CREATE USER me IDENTIFIED BY 'hunter2'",
    'alter user me identified by "hunter2"',
    "password: >\n  hunter1\n  hunter2\nuser: me",
    "password: |-\n  hunter2",
]
"""Forms in which programs take secrets, beside a URL's and an assignment's."""


@pytest.mark.parametrize("text", SECRET_TEXTS)
def test_each_form_of_a_secret_is_masked(text: str) -> None:
    """Headers, options, texts of connections, keys, signatures, elements; twice is as once."""
    shown = shown_value("my.value", text)
    assert MASK in shown
    assert not any(part in shown for part in ("hunter2", "ter2", "aHVu"))
    assert shown_value("my.value", shown) == shown


def test_a_secret_of_a_known_form_is_masked_without_a_name() -> None:
    """Tokens of services, access keys of clouds, a user of 32 hexadecimal digits."""
    for text in (
        "AKIA" + "IOSFODNN7EXAMPLE",
        "glpat-" + "x1" * 10,
        "xoxb-" + "1" * 12,
        "https://" + "0123456789abcdef" * 2 + "@host/1",
        "dckr_pat_" + "x1" * 12,
        "SG." + "x" * 22 + "." + "y" * 43,
        "dop_v1_" + "0f" * 32,
        "shpat_" + "0f" * 16,
        "hf_" + "x1" * 17,
        "dapi" + "0f" * 16,
        "ya29." + "x1" * 20,
        "GOCSPX-" + "x1" * 14,
        "glsa_" + "x1" * 16 + "_0123abcd",
        "AGE-SECRET-KEY-1" + "Q" * 58,
    ):
        assert MASK in shown_value("my.value", f"a {text} b")


def test_masking_keeps_keys_and_hides_values() -> None:
    """Every key stays; the value of a secret one, even an empty one, is eight asterisks."""
    config = Config({"job.name": "j", "sensitive.a": "x", "db.password": ""})
    assert masked(config) == Config({"job.name": "j", "sensitive.a": MASK, "db.password": MASK})
    assert MASK == "********"


def test_an_error_never_has_a_secrets_value() -> None:
    """Neither its line nor its fields, wherever it is raised."""
    error = ConfigError("systems.k.consumer.sasl.password", "hunter2", "it is bad", "mend it")
    assert str(error) == "systems.k.consumer.sasl.password = '********': it is bad; mend it"
    assert error.value == MASK
    error = ConfigError("my.pwd", "hunter2", "'hunter2' is short", "do not write hunter2")
    assert str(error) == "my.pwd = '********': '********' is short; do not write ********"
    assert "hunter2" not in error.rule + error.remedy
    config = Config({"sensitive.port": "hunter2"})
    with pytest.raises(ConfigError) as caught:
        config.get_int("sensitive.port", 1)
    assert "hunter2" not in str(caught.value)


def test_a_views_text_has_no_secrets() -> None:
    """What a view of the configuration prints of itself, in a log or a traceback, has none."""
    config = Config(
        {
            "job.name": "j",
            "job.default.system": "k",
            "systems.k.consumer.bootstrap.servers": "h:1",
            "systems.k.consumer.sasl.password": "hunter2",
            "systems.k.producer.sasl.jaas.config": 'X required password="hunter2";',
            "task.spark.conf.spark.hadoop.fs.s3a.secret.key": "hunter2",
        }
    )
    for view in (config, SystemConfig.of(config, "k"), TaskConfig.of(config)):
        assert "hunter2" not in repr(view)


def test_secrets_on_the_command_line_are_warned_of() -> None:
    """Everybody on a machine can read the arguments of its programs: one line per key, no value."""
    (warning,) = warnings_of_overrides(["a=1", "db.password=hunter2", "db.password=x", "b"])
    assert warning.startswith("db.password is on the command line")
    assert "hunter2" not in warning
