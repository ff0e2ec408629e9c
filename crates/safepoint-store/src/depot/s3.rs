//! A bucket of an S3-compatible server, by the variables that all such
//! programs read.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, ObjectStore, RetryConfig};

use super::http::{Connector, Encryption};
use crate::{StoreError, error::Said};

/// Variables that are handed on as they are.
const HANDED_ON: [(&str, AmazonS3ConfigKey); 8] = [
    ("AWS_ACCESS_KEY_ID", AmazonS3ConfigKey::AccessKeyId),
    ("AWS_SECRET_ACCESS_KEY", AmazonS3ConfigKey::SecretAccessKey),
    ("AWS_SESSION_TOKEN", AmazonS3ConfigKey::Token),
    ("AWS_DEFAULT_REGION", AmazonS3ConfigKey::DefaultRegion),
    ("AWS_REGION", AmazonS3ConfigKey::Region),
    (
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        AmazonS3ConfigKey::WebIdentityTokenFile,
    ),
    ("AWS_ROLE_ARN", AmazonS3ConfigKey::RoleArn),
    ("AWS_ROLE_SESSION_NAME", AmazonS3ConfigKey::RoleSessionName),
];

/// Looks a variable up.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Makes a client for `bucket`. Reaches nobody yet.
pub(super) fn client(
    place: &str,
    bucket: &str,
    variables: Variables<'_>,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let refused = |why: &str| StoreError::DepotRefused {
        place: place.to_owned(),
        cause: Arc::new(Said(why.to_owned())),
    };
    let given = |name: &str| variables(name).filter(|value| !value.is_empty());
    // Without them the client would ask the network of a cloud for some, and wait long for nothing.
    if given("AWS_ACCESS_KEY_ID").is_none() && given("AWS_WEB_IDENTITY_TOKEN_FILE").is_none() {
        return Err(refused(
            "no credentials: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` are not set",
        ));
    }
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket);
    for (name, key) in HANDED_ON {
        if let Some(value) = given(name) {
            builder = builder.with_config(key, value);
        }
    }
    let mut encryption = Encryption::Always;
    let endpoint = given("AWS_ENDPOINT_URL_S3").or_else(|| given("AWS_ENDPOINT_URL"));
    if let Some(endpoint) = endpoint {
        if endpoint.starts_with("http://") {
            let allowed = given("AWS_ALLOW_HTTP").is_some_and(|value| value == "true");
            if !is_loopback(&endpoint) && !allowed {
                return Err(refused(
                    "its address is not encrypted: use `https://`, or set `AWS_ALLOW_HTTP=true` in a network that you trust",
                ));
            }
            encryption = Encryption::NotNeeded;
            builder = builder.with_allow_http(true);
        }
        builder = builder.with_endpoint(endpoint);
    }
    let roots = given("AWS_CA_BUNDLE")
        .map(|path| std::fs::read(&path).map_err(|error| StoreError::file("read", path, error)))
        .transpose()?;
    let connector = Connector::new(roots.as_deref(), encryption)
        .ok_or_else(|| refused("`AWS_CA_BUNDLE` has no certificate in it"))?;
    let bucket = builder
        .with_http_connector(connector)
        .with_retry(RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(2),
                base: 2.0,
            },
            max_retries: 3,
            retry_timeout: Duration::from_secs(60),
        })
        .build()
        .map_err(|error| refused(&error.to_string()))?;
    Ok(Arc::new(bucket))
}

/// Whether an address of the form `http://HOST:PORT` is on this machine.
fn is_loopback(endpoint: &str) -> bool {
    let Ok(uri) = endpoint.parse::<http::Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default();
    let number = host.trim_start_matches('[').trim_end_matches(']');
    let address: Result<std::net::IpAddr, _> = number.parse();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(given: &[(&str, &str)]) -> Option<String> {
        let variables = |name: &str| {
            let found = given.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        match client("s3://team", "team", &variables) {
            Ok(_) => None,
            Err(error) => Some(std::error::Error::source(&error)?.to_string()),
        }
    }

    #[test]
    fn su_09_nothing_is_sent_without_encryption_or_credentials() {
        let key = ("AWS_ACCESS_KEY_ID", "k");
        let secret = ("AWS_SECRET_ACCESS_KEY", "s");
        let endpoint = |address| ("AWS_ENDPOINT_URL", address);
        assert_eq!(refusal(&[key, secret]), None);
        assert_eq!(
            refusal(&[key, secret, endpoint("https://s3.example")]),
            None
        );
        for address in [
            "http://localhost:9000",
            "http://127.0.0.1:1",
            "http://[::1]:1",
        ] {
            assert_eq!(
                refusal(&[key, secret, endpoint(address)]),
                None,
                "{address}"
            );
        }
        for address in [
            "http://s3.example",
            "http://localhost.example",
            "http://10.0.0.1",
        ] {
            let refused = refusal(&[key, secret, endpoint(address)]).unwrap();
            assert!(refused.contains("not encrypted"), "{refused}");
            let allowed = ("AWS_ALLOW_HTTP", "true");
            assert_eq!(refusal(&[key, secret, allowed, endpoint(address)]), None);
        }
        assert!(refusal(&[]).unwrap().contains("no credentials"));
        let bundle = ("AWS_CA_BUNDLE", "/dev/null");
        assert!(
            refusal(&[key, secret, bundle])
                .unwrap()
                .contains("no certificate")
        );
    }
}
