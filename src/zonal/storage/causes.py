"""Explain errors of object stores: the cause in one line, without credentials, and what to check."""

import re
from collections.abc import Iterable
from urllib.parse import quote

import pyarrow as pa

STORAGE_ERRORS = (OSError, pa.ArrowException)
"""What file systems raise; Azure's also raises Arrow errors that are no `OSError`."""

_CAUSES = (
    re.compile(r"AWS Error (?P<code>[A-Z_]+(?: \(HTTP status \d+\))?) during \w+ operation:? ?(?P<text>.*)", re.DOTALL),
    re.compile(r"google::cloud::Status\((?P<code>[A-Z_]+): (?P<text>.*)\)", re.DOTALL),
    re.compile(r"Azure Error: \[(?P<code>[^\]]*)\] ?(?P<text>.*)", re.DOTALL),
    re.compile(r"failed: (?P<code>)\w*\d(?:Exception|error)?\w*: (?P<text>.*)", re.DOTALL),
)
_NOISE = (
    r"Generic \w+ error: ",
    r"Error performing \w+ \S+ in [\d.]+m?s(, after \d+ retries)?(, max_retries: \d+, retry_timeout: \w+)? +- ",
    r"Server returned (non-2xx status code|error response): ",
    r"Retry policy exhausted, with a last message of ",
    r"Permanent error, with a last message of ",
    r" error_info=.*",
    r" ?\(Request ID: [^)]*\)",
    r"\s*(RequestId|Request ID|Time):\S.*",
    r"Unable to parse ExceptionName: ",
    r"The request was not sent, as such an access token is required to complete the request successfully\. ",
    r"Learn more about Google Cloud authentication at \S+ ",
    r"See Azure::Core::Diagnostics::Logger.*",
    r"PerformWork\(\) - ",
    r"\s*dlopen\(.*",
)
_SILENT = re.compile(
    r"NETWORK_CONNECTION|curl ?(?:code|error)|UNAVAILABLE|DEADLINE_EXCEEDED|Fail to get a new connection|"
    r"error sending request|resolv\w+ host|connect to server|timed? ?out|SSL|certificate",
    re.IGNORECASE,
)
_NO_CREDENTIALS = re.compile(
    r"OAuth2 access token|DefaultAzureCredential|ClientSecretCredential|Base64|explicit credentials"
)
_DENIED = re.compile(
    r"ACCESS_DENIED|HTTP status 40[13]|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|EXPIRED_TOKEN|INVALID_CLIENT|"
    r"PERMISSION_DENIED|UNAUTHENTICATED|Authenticat|Authoriz|not authorized|denied|\b40[13]\b",
    re.IGNORECASE,
)
_CREDENTIALS = {
    "s3": "the credentials: the storage options aws_access_key_id and aws_secret_access_key, else the environment's "
    "AWS_ACCESS_KEY_ID, AWS_PROFILE or the role of this machine",
    "gs": "the credentials: GOOGLE_APPLICATION_CREDENTIALS in the environment, `gcloud auth application-default "
    "login`, or the storage option google_skip_signature=true for public data",
    "abfss": "the credentials: the storage option azure_storage_account_key or azure_storage_sas_token, else the "
    "environment's AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or `az login`",
}
_ENDPOINT = {
    "s3": "the endpoint (the storage option aws_endpoint_url or AWS_ENDPOINT_URL in the environment), the bucket's "
    "name and region (aws_region), and",
    "gs": "the storage option google_endpoint_url, if it is given, and",
    "abfss": "the name of the account in the location, the storage option azure_endpoint, if it is given, and",
}
_HADOOP = (
    "that JAVA_HOME, HADOOP_HOME and CLASSPATH (`hadoop classpath --glob`) are set, which pyarrow needs for HDFS; or "
    "mount it and give the path"
)


def cause_of(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """Return the cause of an error in one line, without a full stop and without credentials.

    >>> cause_of(OSError("When getting x: AWS Error ACCESS_DENIED during HeadObject operation: No response body."))
    'ACCESS_DENIED: No response body'
    """
    text = str(error)
    for pattern in _CAUSES:
        if match := pattern.search(text):
            code, message = match["code"], match["text"]
            text = f"{code}: {message}" if code and message.strip() else code or message
            break
    for noise in _NOISE:
        text = re.sub(noise, "", text, flags=re.DOTALL)
    text = " ".join(hidden(text, secrets).split()).rstrip(". ")
    return (text if len(text) <= 400 else f"{text[:399]}…") or type(error).__name__


def hidden(text: str, secrets: Iterable[str] = ()) -> str:
    """Remove credentials from a text: users and queries of URLs, and values that are known to be secret.

    >>> hidden("GET https://me:pw@host/x?sig=abc failed")
    'GET https://…@host/x?… failed'
    """
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "…").replace(quote(secret, safe=""), "…")
    text = re.sub(r"://[^/\s@']*@", "://…@", text)
    return re.sub(r"(://[^\s'\"?]*)\?[^\s'\"]*", r"\1?…", text)


def is_silent(error: BaseException) -> bool:
    """Tell whether an error means that the store didn't answer, or got no request for lack of credentials."""
    return bool(_SILENT.search(str(error)) or _NO_CREDENTIALS.search(str(error)))


def is_refused(error: BaseException) -> bool:
    """Tell whether a store may have refused the credentials; of some requests the answer has a number only."""
    return bool(_DENIED.search(str(error)) or re.search(r"ExpiredToken|HTTP status 400", str(error)))


def what_to_check(store: str, error: BaseException) -> str:
    """Say in a sentence what to check where a store can't be used; empty for errors of single files."""
    text = str(error)
    if store == "hdfs":
        return f"Check {_HADOOP}."
    if store not in _CREDENTIALS:
        return ""
    if _NO_CREDENTIALS.search(text):
        return f"Check {_CREDENTIALS[store]}."
    if isinstance(error, TimeoutError) and store == "gs":
        return f"Check {_CREDENTIALS[store]}; {_ENDPOINT[store]} that this machine reaches it."
    if isinstance(error, TimeoutError) or _SILENT.search(text):
        return f"Check {_ENDPOINT[store]} that this machine reaches it."
    if _DENIED.search(text):
        return f"Check {_CREDENTIALS[store]}; and their right to list and read it."
    if re.search(r"HTTP status 30\d|HTTP status 400|PERMANENT_REDIRECT|REGION", text):
        return "Check the bucket's region: the storage option aws_region, or AWS_REGION in the environment."
    return ""


def store_in(error: BaseException) -> str:
    """Return the store that an error comes from, by its text."""
    words = {"AWS Error": "s3", "google::cloud": "gs", "Azure": "abfss"}
    return next((store for word, store in words.items() if word in str(error)), "")


def told(error: BaseException, *, store: str = "", endpoint: str = "", secrets: Iterable[str] = ()) -> str:
    """Explain an error of a storage: its cause, the server, and what to check; ends with a full stop."""
    at = f" (at {endpoint})" if endpoint else ""
    return f"{cause_of(error, secrets)}{at}. {what_to_check(store or store_in(error), error)}".rstrip()
