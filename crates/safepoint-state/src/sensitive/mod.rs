//! Which files are secrets: told by their names, or by keys and tokens in them.
//!
//! A secret is not copied into a checkpoint in the clear. A file that is taken
//! for one by mistake makes the checkpoint inexact, so both ways of telling
//! prefer shapes that ordinary source text does not have.

mod content;
mod key_block;
mod names;
mod shapes;

pub use content::by_content;
pub use names::by_name;

/// Why a file counts as sensitive.
///
/// The numbers stand in cache files: a new reason gets a new number, and none
/// is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// Variables for a process, such as `.env`.
    EnvironmentFile = 1,
    /// A private key of SSH, TLS, PGP or age.
    PrivateKey = 2,
    /// A store of keys or passwords, such as `*.p12` or `*.kdbx`.
    KeyStore = 3,
    /// A file in which a tool keeps its login, such as `.netrc`.
    Credentials = 4,
    /// The login of a cloud provider or a cluster.
    CloudCredentials = 5,
    /// A file that its name calls secret, such as `secrets.yml`.
    SecretsFile = 6,
    /// An access key of AWS.
    AwsKey = 7,
    /// A token of GitHub.
    GithubToken = 8,
    /// A token of GitLab.
    GitlabToken = 9,
    /// A token or a webhook of Slack.
    SlackToken = 10,
    /// A key of a Google API.
    GoogleKey = 11,
    /// A token of a package registry: npm, PyPI or Docker Hub.
    RegistryToken = 12,
    /// A live key of Stripe.
    StripeKey = 13,
    /// A key of a provider of models, such as OpenAI or Anthropic.
    ModelKey = 14,
    /// A token of DigitalOcean.
    DigitalOceanToken = 15,
    /// A key of SendGrid.
    SendGridKey = 16,
    /// An account key of Azure.
    AzureKey = 17,
}

impl Reason {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Self; 17] = [
        Self::EnvironmentFile,
        Self::PrivateKey,
        Self::KeyStore,
        Self::Credentials,
        Self::CloudCredentials,
        Self::SecretsFile,
        Self::AwsKey,
        Self::GithubToken,
        Self::GitlabToken,
        Self::SlackToken,
        Self::GoogleKey,
        Self::RegistryToken,
        Self::StripeKey,
        Self::ModelKey,
        Self::DigitalOceanToken,
        Self::SendGridKey,
        Self::AzureKey,
    ];

    /// A short stable text for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EnvironmentFile => "environment file",
            Self::PrivateKey => "private key",
            Self::KeyStore => "key store",
            Self::Credentials => "credentials",
            Self::CloudCredentials => "cloud credentials",
            Self::SecretsFile => "secrets file",
            Self::AwsKey => "AWS key",
            Self::GithubToken => "GitHub token",
            Self::GitlabToken => "GitLab token",
            Self::SlackToken => "Slack token",
            Self::GoogleKey => "Google key",
            Self::RegistryToken => "package registry token",
            Self::StripeKey => "Stripe key",
            Self::ModelKey => "model provider key",
            Self::DigitalOceanToken => "DigitalOcean token",
            Self::SendGridKey => "SendGrid key",
            Self::AzureKey => "Azure key",
        }
    }

    /// The number of this reason in a cache file; never zero.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The reason with this number, if there is one.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn st_08_codes_are_distinct_and_lead_back_to_their_reason() {
        for reason in Reason::ALL {
            assert_ne!(reason.code(), 0);
            assert_eq!(Reason::from_code(reason.code()), Some(reason));
        }
        let texts: HashSet<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(texts.len(), Reason::ALL.len());
        assert_eq!(Reason::from_code(0), None);
        assert_eq!(Reason::from_code(255), None);
    }
}
