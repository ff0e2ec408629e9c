//! What a form sent, once it is known to be ours.
//!
//! Every form carries a mark that only our own pages know. There is no other way to the
//! fields than through [`Form`], so no handler can forget to look at it.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::response::IntoResponse;
use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use safepoint_model::Digest;

use super::trouble::Trouble;
use super::visit::Visitor;

/// The name of the field with the mark.
const MARK: &str = "mark";

/// The fields of a form that came from us.
#[derive(Debug)]
pub(super) struct Form(Fields);

/// Names and values, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// What is in a query, or in the body of a form.
    pub(super) fn read(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// What the query of an address says.
    pub(super) fn of(uri: &http::Uri) -> Self {
        Self::read(uri.query().unwrap_or_default().as_bytes())
    }

    /// The value of a field. An empty one was not filled in.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(it, _)| it == name)?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }

    /// The value of a field, to the letter.
    pub(super) fn exact(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(it, _)| it == name)?;
        Some(value)
    }
}

impl Form {
    /// The value of a field.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)
    }

    /// The value of a field, with the line ends that a browser changes put right.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        Some(self.0.exact(name)?.replace("\r\n", "\n"))
    }
}

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let known = request.extensions().get::<Visitor>().cloned();
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(IntoResponse::into_response)?;
        let fields = Fields::read(&bytes);
        let sent = fields.exact(MARK).unwrap_or_default();
        match known.is_some_and(|visitor| equal(&visitor.mark(), sent)) {
            true => Ok(Self(fields)),
            false => Err(Trouble::new(
                StatusCode::FORBIDDEN,
                "this form is not from your visit",
                "open the page again, and send it from there",
            )
            .into_response()),
        }
    }
}

/// Whether two secrets are the same; how long it takes says nothing about where they differ.
fn equal(one: &str, other: &str) -> bool {
    Digest::of_parts(&[one.as_bytes()]) == Digest::of_parts(&[other.as_bytes()])
}

/// The field with the mark, for every form.
pub(super) fn mark(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name=(MARK) value=(visitor.mark()); }
}
