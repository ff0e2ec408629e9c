//! Handing spans to a collector over OTLP/HTTP, in JSON.

use std::path::Path;

use safepoint_control::Https;
use safepoint_model::text;
use serde::Deserialize;

use super::witness::https;
use crate::error::CliError;

/// How much of a collector's own words is shown.
const MOST_CHARACTERS: usize = 200;

/// Where spans go.
pub(super) struct Collector {
    https: Https,
    url: String,
    headers: Vec<(String, String)>,
}

/// What a collector answers.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Answer {
    partial_success: PartialSuccess,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PartialSuccess {
    rejected_spans: Count,
    error_message: String,
}

/// A number of 64 bits, which JSON has as a text; some write a number.
#[derive(Default)]
struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let number = match &value {
            serde_json::Value::String(text) => text.parse().ok(),
            other => other.as_u64(),
        };
        Ok(Self(number.unwrap_or(0)))
    }
}

impl Collector {
    pub(super) fn new(
        directory: &Path,
        url: &str,
        headers: &[String],
        ca: Option<&Path>,
    ) -> Result<Self, CliError> {
        let headers = headers.iter().map(|header| {
            let (name, value) = header.split_once(':')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        });
        let headers: Option<Vec<_>> = headers.collect();
        Ok(Self {
            https: https(directory, ca)?,
            url: endpoint(url),
            headers: headers.ok_or_else(|| CliError::Invalid {
                message: "`--header` is not of the form `NAME: VALUE`".into(),
                suggestion: "for example `--header 'x-api-key: …'`",
            })?,
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Sends one request.
    pub(super) fn send(&self, request: &str) -> Result<(), CliError> {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(self.headers.iter().map(|(name, value)| (&**name, &**value)));
        let answer = self
            .https
            .send(&self.url, &headers, request.as_bytes())
            .map_err(|error| CliError::Service {
                what: "collector",
                error,
            })?;
        if !(200..300).contains(&answer.status) {
            let said = String::from_utf8_lossy(&answer.body);
            let said = text::shorten(&text::line(&said).text, MOST_CHARACTERS);
            let status = answer.status;
            return Err(CliError::Collector(format!("status {status} {said}")));
        }
        let answer: Answer = serde_json::from_slice(&answer.body).unwrap_or_default();
        let refused = answer.partial_success;
        if refused.rejected_spans.0 > 0 {
            let why = text::shorten(&text::line(&refused.error_message).text, MOST_CHARACTERS);
            let count = refused.rejected_spans.0;
            return Err(CliError::Collector(format!("{count} were refused: {why}")));
        }
        Ok(())
    }
}

/// The address that takes spans: where only a host is named, the usual path.
fn endpoint(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    match rest.split_once('/') {
        None => format!("{url}/v1/traces"),
        Some((_, "")) => format!("{url}v1/traces"),
        Some(_) => url.to_owned(),
    }
}
