//! Secrets by name: files whose path alone says that they hold one.
//!
//! Only names that people and tools give to secrets and hardly anything else.
//! Where a name is used for both, as `.crt` and `.asc` are, the content decides.

use super::Reason;

/// No name that is compared whole is longer; longer ones are known by their ends.
const LONGEST: usize = 64;

/// Parts of a name that mark documentation: `.env.example`, `template.env`.
const DOCUMENTATION: [&[u8]; 10] = [
    b"example",
    b"examples",
    b"sample",
    b"template",
    b"tmpl",
    b"tpl",
    b"dist",
    b"default",
    b"defaults",
    b"schema",
];

/// How the names of certificates end: `ca.pem`, `server-cert.pem`.
const CERTIFICATE: [&[u8]; 9] = [
    b"ca",
    b"cert",
    b"certs",
    b"certificate",
    b"certificates",
    b"chain",
    b"bundle",
    b"roots",
    b"csr",
];

/// Parts of a name, or their ends, that public keys have: `rsa-public-key.pem`.
const PUBLIC: [&[u8]; 5] = [b"public", b"publickey", b"pub", b"pubkey", b"spki"];

/// Whether a path alone says that the file is a secret.
///
/// `path` is relative to the workspace, with `/` between its components, in
/// any bytes. The last component is compared without regard to ASCII case.
pub fn by_name(path: &[u8]) -> Option<Reason> {
    let (directories, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (path.get(..slash)?, path.get(slash + 1..)?),
        None => (&[][..], path),
    };
    // The end suffices for a long name, since only its extension can tell.
    let end = name.get(name.len().saturating_sub(LONGEST)..)?;
    let mut buffer = [0; LONGEST];
    let lower = buffer.get_mut(..end.len())?;
    lower.copy_from_slice(end);
    lower.make_ascii_lowercase();

    if is_documentation(lower) {
        return None;
    }
    by_base_name(lower)
        .or_else(|| by_extension(lower))
        .or_else(|| by_directory(directories, lower))
}

/// Names that are a secret wherever they stand.
fn by_base_name(name: &[u8]) -> Option<Reason> {
    match name {
        // The vault of dotenv is encrypted, and made to be shared.
        b".env.vault" => None,
        b".env" | b".envrc" => Some(Reason::EnvironmentFile),
        b"id_rsa" | b"id_dsa" | b"id_ecdsa" | b"id_ecdsa_sk" | b"id_ed25519" | b"id_ed25519_sk"
        | b"id_xmss" => Some(Reason::PrivateKey),
        b".netrc"
        | b"_netrc"
        | b".pgpass"
        | b"pgpass.conf"
        | b".my.cnf"
        | b".mylogin.cnf"
        | b".git-credentials"
        | b".npmrc"
        | b".pypirc"
        | b".htpasswd"
        | b".vault-token"
        | b".terraformrc"
        | b"terraform.rc"
        | b"credentials.tfrc.json"
        | b".dockercfg"
        | b"rclone.conf" => Some(Reason::Credentials),
        b".boto" | b".s3cfg" | b"application_default_credentials.json" | b"kubeconfig" => {
            Some(Reason::CloudCredentials)
        }
        b"credentials.json" => Some(Reason::Credentials),
        b"secrets.yml" | b"secrets.yaml" | b"secrets.json" | b"secrets.toml" => {
            Some(Reason::SecretsFile)
        }
        _ if name.starts_with(b".env.") => Some(Reason::EnvironmentFile),
        _ if name.ends_with(b".json")
            && (name.starts_with(b"service-account") || name.starts_with(b"service_account")) =>
        {
            Some(Reason::CloudCredentials)
        }
        _ => None,
    }
}

/// Extensions that only secrets have.
fn by_extension(name: &[u8]) -> Option<Reason> {
    let dot = name.iter().rposition(|byte| *byte == b'.')?;
    let (stem, extension) = (name.get(..dot)?, name.get(dot + 1..)?);
    match extension {
        b"env" => Some(Reason::EnvironmentFile),
        b"pem" | b"key" if is_public(stem) => None,
        b"pem" if is_certificate(stem) => None,
        b"pem" | b"key" | b"ppk" => Some(Reason::PrivateKey),
        // Android's tools make it with a published password, and projects share it.
        b"keystore" if stem == b"debug" => None,
        b"p12" | b"pfx" | b"jks" | b"keystore" | b"kdbx" => Some(Reason::KeyStore),
        b"kubeconfig" => Some(Reason::CloudCredentials),
        _ => None,
    }
}

/// Names that are a secret only in the directory of their tool.
fn by_directory(directories: &[u8], name: &[u8]) -> Option<Reason> {
    let mut within = [None; 2];
    for component in directories.split(|byte| *byte == b'/') {
        within = [within[1], Some(component)];
        match component {
            b".ssh" if !is_public_in_ssh(name) => return Some(Reason::PrivateKey),
            b".gnupg" => return Some(Reason::PrivateKey),
            b"gcloud" if within[0] == Some(b".config") => return Some(Reason::CloudCredentials),
            _ => {}
        }
    }
    match (within[1]?, name) {
        (b".cargo", b"credentials" | b"credentials.toml")
        | (b".gem", b"credentials")
        | (b".docker", b"config.json")
        | (b".composer", b"auth.json")
        | (b"gh", b"hosts.yml" | b"hosts.yaml") => Some(Reason::Credentials),
        (b".aws", b"credentials" | b"config") | (b".kube", b"config") => {
            Some(Reason::CloudCredentials)
        }
        // Projects keep pipelines in a directory of the same name.
        (b".azure", b"azureprofile.json" | b"accesstokens.json") => Some(Reason::CloudCredentials),
        (b".azure", name)
            if name.starts_with(b"msal_token_cache") || name.starts_with(b"service_principal") =>
        {
            Some(Reason::CloudCredentials)
        }
        _ => None,
    }
}

/// Whether this is what `ssh` itself shows to others, or its settings.
fn is_public_in_ssh(name: &[u8]) -> bool {
    name.ends_with(b".pub")
        || matches!(
            name,
            b"known_hosts" | b"known_hosts.old" | b"authorized_keys" | b"config"
        )
}

/// Whether a part of the name of an environment file says that it only shows what one looks like.
fn is_documentation(name: &[u8]) -> bool {
    (name.starts_with(b".env.") || name.ends_with(b".env"))
        && name
            .split(|byte| matches!(byte, b'.' | b'-' | b'_'))
            .any(|part| DOCUMENTATION.contains(&part))
}

/// Whether the name is one of a public key.
fn is_public(stem: &[u8]) -> bool {
    stem.split(|byte| matches!(byte, b'.' | b'-' | b'_'))
        .any(|part| PUBLIC.iter().any(|end| part.ends_with(end)))
}

/// Whether the name is one of a certificate.
fn is_certificate(stem: &[u8]) -> bool {
    CERTIFICATE.iter().any(|end| stem.ends_with(end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn st_08_names_of_secrets_are_known() {
        use Reason::{
            CloudCredentials as Cloud, Credentials, EnvironmentFile as Environment, KeyStore,
            PrivateKey, SecretsFile,
        };
        for (path, reason) in [
            (".env", Environment),
            ("deep/in/.ENV", Environment),
            (".env.production", Environment),
            ("config/prod.env", Environment),
            (".envrc", Environment),
            ("id_rsa", PrivateKey),
            ("keys/ID_ED25519", PrivateKey),
            ("server.key", PrivateKey),
            ("tls/privkey.pem", PrivateKey),
            ("ca-key.pem", PrivateKey),
            ("cacert.key", PrivateKey),
            ("config/master.key", PrivateKey),
            ("login.ppk", PrivateKey),
            ("release.keystore", KeyStore),
            ("store.P12", KeyStore),
            ("passwords.kdbx", KeyStore),
            (".netrc", Credentials),
            ("home/.pgpass", Credentials),
            (".npmrc", Credentials),
            (".pypirc", Credentials),
            (".git-credentials", Credentials),
            (".cargo/credentials", Credentials),
            ("home/.cargo/credentials.toml", Credentials),
            (".docker/config.json", Credentials),
            (".config/gh/hosts.yml", Credentials),
            ("credentials.json", Credentials),
            (".aws/credentials", Cloud),
            ("a/.aws/config", Cloud),
            (".azure/msal_token_cache.json", Cloud),
            (".config/gcloud/legacy/x/adc.json", Cloud),
            ("service-account-prod.json", Cloud),
            (".kube/config", Cloud),
            ("config/secrets.yml", SecretsFile),
            ("secrets.toml", SecretsFile),
            (".ssh/work_laptop", PrivateKey),
            (".gnupg/private-keys-v1.d/AB.key", PrivateKey),
            (".gnupg/trustdb.gpg", PrivateKey),
        ] {
            assert_eq!(by_name(path.as_bytes()), Some(reason), "{path}");
        }
        let long = format!("{}.pfx", "x".repeat(240));
        assert_eq!(by_name(long.as_bytes()), Some(KeyStore));
    }

    #[test]
    fn st_08_names_of_sources_and_documentation_are_left_alone() {
        for path in [
            "",
            "/",
            "a/",
            "keys.rs",
            "env.py",
            "credentials.rs",
            "secrets.go",
            "environment.ts",
            ".envoy",
            "id_rsa.pub",
            ".env.example",
            ".env.sample",
            ".env.template",
            ".env.dist",
            ".env.production.example",
            "example.env",
            ".env.vault",
            "env",
            "src/.env.d/readme",
            "cert.crt",
            "key.asc",
            "release.gpg",
            "cacert.pem",
            "server-cert.pem",
            "ca.pem",
            "public.key",
            "rsapub.pem",
            "es256_publickey.pem",
            "pkcs8-public-key.pem",
            "roots.pem",
            "debug.keystore",
            "terraform.tfstate",
            "terraform.tfvars",
            ".ssh/id_rsa.pub",
            ".ssh/known_hosts",
            ".ssh/config",
            ".azure/pipelines.yml",
            "config",
            "aws/credentials",
            "credentials",
            ".cargo/config.toml",
            "config.json",
            "src/hosts.yml",
            "keystore.c",
            "key",
            "pem",
            "gcloud/main.go",
            ".yarnrc.yml",
        ] {
            assert_eq!(by_name(path.as_bytes()), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn st_08_any_bytes_are_a_name(path in prop::collection::vec(any::<u8>(), 0..300)) {
            by_name(&path);
        }
    }
}
