//! What a gate asks, and which answers will do.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// One question of a gate.
///
/// ```
/// use safepoint_gates::{AnswerValidation, CheckpointQuestion};
///
/// // Boolean question
/// CheckpointQuestion::boolean("agree", "Do you agree?");
///
/// // Text question with validation
/// let reason = CheckpointQuestion::text("reason", "Why?")
///     .with_validation(AnswerValidation {
///         min_length: Some(10),
///         must_not_contain: vec!["forbidden".to_string()],
///         ..Default::default()
///     })
///     .with_hint("Explain your reasoning");
/// assert_eq!(reason.hint.as_deref(), Some("Explain your reasoning"));
///
/// // Acknowledgment
/// CheckpointQuestion::acknowledgment("ack", "I understand the risks.");
///
/// // Choice
/// let role = CheckpointQuestion::choice("role", "Select role", vec!["admin", "user"])
///     .optional();
/// assert_eq!(role.choices(), ["admin", "user"]);
/// assert!(!role.required);
/// ```
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointQuestion {
    /// Its name in this gate.
    pub question_id: String,
    /// The question itself.
    pub question: String,
    /// What kind of answer is wanted.
    #[serde(default)]
    pub response_type: ResponseType,
    /// Whether the gate waits for it.
    #[serde(default = "yes")]
    pub required: bool,
    /// What helps to answer it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What can be chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The smallest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The largest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// What a JSON answer must look like: a JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Which answer passes the gate.
    #[serde(default)]
    pub expect: Expect,
    /// What an answer must fulfil besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<AnswerValidation>,
    /// What follows an answer that does not.
    #[serde(default)]
    pub on_invalid: InvalidAnswerAction,
    /// How often it may be answered wrongly before the gate stays shut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_attempts: Option<u32>,
}

fn yes() -> bool {
    true
}

/// Which answer to a yes-or-no question passes the gate.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// Only yes.
    #[default]
    Yes,
    /// Only no.
    No,
    /// Both: the question only wants to know.
    Any,
}

/// What kind of answer is wanted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseType {
    /// Words.
    #[default]
    Text,
    /// Yes or no.
    Boolean,
    /// "Understood".
    Acknowledgment,
    /// One of some options.
    Choice(ChoiceForm),
    /// A number.
    Number(NumberForm),
    /// Anything that a schema describes.
    Json(JsonForm),
}

/// The options of a choice, in the object form of `response_type`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ChoiceForm {
    /// What can be chosen.
    #[serde(default)]
    pub options: Vec<String>,
}

/// The bounds of a number, in the object form of `response_type`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NumberForm {
    /// The smallest.
    #[serde(default)]
    pub min: Option<f64>,
    /// The largest.
    #[serde(default)]
    pub max: Option<f64>,
}

/// The schema of a JSON answer, in the object form of `response_type`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JsonForm {
    /// A JSON Schema.
    #[serde(default)]
    pub schema: Option<Value>,
}

/// A form without fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoForm {}

impl ResponseType {
    const NAMES: [&'static str; 6] = [
        "text",
        "boolean",
        "acknowledgment",
        "choice",
        "number",
        "json",
    ];

    /// The kind as it is written.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Boolean => "boolean",
            Self::Acknowledgment => "acknowledgment",
            Self::Choice(_) => "choice",
            Self::Number(_) => "number",
            Self::Json(_) => "json",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "text" => Self::Text,
            "boolean" => Self::Boolean,
            "acknowledgment" => Self::Acknowledgment,
            "choice" => Self::Choice(ChoiceForm::default()),
            "number" => Self::Number(NumberForm::default()),
            "json" => Self::Json(JsonForm::default()),
            _ => return None,
        })
    }
}

impl<'de> Deserialize<'de> for ResponseType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;

        impl<'de> Visitor<'de> for Forms {
            type Value = ResponseType;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a kind of answer, such as `text` or `{choice: {options: […]}}`")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<ResponseType, E> {
                ResponseType::named(name)
                    .ok_or_else(|| E::unknown_variant(name, &ResponseType::NAMES))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ResponseType, A::Error> {
                let Some(name) = map.next_key::<String>()? else {
                    return Err(de::Error::custom("the kind of answer is missing"));
                };
                let form = match name.as_str() {
                    "choice" => ResponseType::Choice(map.next_value()?),
                    "number" => ResponseType::Number(map.next_value()?),
                    "json" => ResponseType::Json(map.next_value()?),
                    other => {
                        map.next_value::<NoForm>()?;
                        self.visit_str(other)?
                    }
                };
                match map.next_key::<String>()? {
                    None => Ok(form),
                    Some(second) => Err(de::Error::custom(format_args!(
                        "`{second}` is one kind of answer too many"
                    ))),
                }
            }
        }

        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for ResponseType {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ResponseType".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let nothing = serde_json::json!({"type": "object", "additionalProperties": false});
        let choice = generator.subschema_for::<ChoiceForm>();
        let number = generator.subschema_for::<NumberForm>();
        let json = generator.subschema_for::<JsonForm>();
        schemars::json_schema!({
            "description": "What kind of answer is wanted.",
            "anyOf": [
                {"type": "string", "enum": Self::NAMES},
                {
                    "type": "object",
                    "minProperties": 1,
                    "maxProperties": 1,
                    "additionalProperties": false,
                    "properties": {
                        "text": nothing,
                        "boolean": nothing,
                        "acknowledgment": nothing,
                        "choice": choice,
                        "number": number,
                        "json": json,
                    }
                }
            ]
        })
    }
}

/// What an answer must fulfil besides its kind.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerValidation {
    /// A regular expression that it matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Its fewest characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<usize>,
    /// Its most characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<usize>,
    /// Words that occur in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_contain: Vec<String>,
    /// Words that do not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_not_contain: Vec<String>,
    /// An own check: the name of an extension, `cel:` and an expression, or an `https:` address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_validator: Option<String>,
}

/// What follows an answer that does not fulfil it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InvalidAnswerAction {
    /// It is asked again, a few times.
    #[default]
    Retry,
    /// The gate stays shut.
    Block,
    /// It counts, with a warning.
    WarnAndContinue,
    /// It counts, and is recorded.
    LogAndContinue,
}

/// Building a question in code, with the words of the specification.
impl CheckpointQuestion {
    fn new(
        question_id: impl Into<String>,
        question: impl Into<String>,
        response_type: ResponseType,
    ) -> Self {
        Self {
            question_id: question_id.into(),
            question: question.into(),
            response_type,
            required: true,
            hint: None,
            options: Vec::new(),
            min: None,
            max: None,
            schema: None,
            expect: Expect::default(),
            validation: None,
            on_invalid: InvalidAnswerAction::default(),
            max_attempts: None,
        }
    }

    /// A question that is answered in words.
    pub fn text(question_id: impl Into<String>, question: impl Into<String>) -> Self {
        Self::new(question_id, question, ResponseType::Text)
    }

    /// A question that is answered with yes or no.
    pub fn boolean(question_id: impl Into<String>, question: impl Into<String>) -> Self {
        Self::new(question_id, question, ResponseType::Boolean)
    }

    /// A statement that must be acknowledged.
    pub fn acknowledgment(question_id: impl Into<String>, statement: impl Into<String>) -> Self {
        Self::new(question_id, statement, ResponseType::Acknowledgment)
    }

    /// A question that is answered with one of `options`.
    pub fn choice(
        question_id: impl Into<String>,
        question: impl Into<String>,
        options: Vec<impl Into<String>>,
    ) -> Self {
        let form = ChoiceForm {
            options: options.into_iter().map(Into::into).collect(),
        };
        Self::new(question_id, question, ResponseType::Choice(form))
    }

    /// A question that is answered with a number.
    pub fn number(question_id: impl Into<String>, question: impl Into<String>) -> Self {
        Self::new(
            question_id,
            question,
            ResponseType::Number(NumberForm::default()),
        )
    }

    /// A question that is answered with whatever `schema` describes.
    pub fn json(
        question_id: impl Into<String>,
        question: impl Into<String>,
        schema: Value,
    ) -> Self {
        let form = JsonForm {
            schema: Some(schema),
        };
        Self::new(question_id, question, ResponseType::Json(form))
    }

    /// Which answers will do.
    pub fn with_validation(mut self, validation: AnswerValidation) -> Self {
        self.validation = Some(validation);
        self
    }

    /// What helps to answer it.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What follows an answer that will not do.
    pub fn on_invalid(mut self, action: InvalidAnswerAction) -> Self {
        self.on_invalid = action;
        self
    }

    /// The gate does not wait for it.
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    /// What can be chosen, whichever way it was written.
    pub fn choices(&self) -> &[String] {
        match &self.response_type {
            ResponseType::Choice(form) if self.options.is_empty() => &form.options,
            _ => &self.options,
        }
    }

    /// The bounds of a number, whichever way they were written.
    pub fn bounds(&self) -> (Option<f64>, Option<f64>) {
        match &self.response_type {
            ResponseType::Number(form) => (self.min.or(form.min), self.max.or(form.max)),
            _ => (self.min, self.max),
        }
    }

    /// The schema of a JSON answer, whichever way it was written.
    pub fn answer_schema(&self) -> Option<&Value> {
        match &self.response_type {
            ResponseType::Json(form) => self.schema.as_ref().or(form.schema.as_ref()),
            _ => self.schema.as_ref(),
        }
    }
}
