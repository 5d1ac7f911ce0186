//! The users of a broker: which key may send and read what.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use linerate_model::ForeignText;
use nkeys::{KeyPair, KeyPairType};

use crate::subjects::{agent_subject, agent_subjects, centre_subject, centre_subjects};

/// Why the users of a broker cannot be written.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UsersError {
    /// A key is not the public key of a user.
    #[error(
        "the key of {of} is not the public key of a user: it has 56 characters and begins with U; got '{key}'"
    )]
    Key {
        /// Whose key.
        of: ForeignText,
        /// The key.
        key: ForeignText,
    },
    /// Two users have the same key, so the broker could not tell them apart.
    #[error("{one} and {other} have the same key; give each a key of its own")]
    SameKey {
        /// A user.
        one: ForeignText,
        /// The other one.
        other: ForeignText,
    },
    /// Two agents have the same name.
    #[error("there are two agents '{0}'; give each a name of its own")]
    SameName(ForeignText),
}

/// A part of the configuration of `nats-server`, to be included by `include "FILE"`: its users and their permissions.
///
/// - `centre` is the public key of the coordinators. They may send to all agents of `fleet` and read from them.
/// - `agents` are names with public keys. An agent may only send as itself, and only read what is for it.
///
/// ```
/// let key = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
/// let agent = "UC6NLCN7AS34YOJVCYD4PJ3QB7QGLYG5B5IMBT25VW5K4TNUJODM7BOX";
/// let file = linerate_broker::users_file("campus", key, &[("rome", agent)]).unwrap();
/// assert!(file.contains(r#"publish: ["linerate.campus.centre.rome"]"#));
/// ```
///
/// # Errors
/// A key is not the public key of a user, or two users have the same key or the same name.
pub fn users_file(fleet: &str, centre: &str, agents: &[(&str, &str)]) -> Result<String, UsersError> {
    let mut users = vec![BrokerUser {
        title: "the coordinators".to_owned(),
        key: centre,
        publish: agent_subjects(fleet),
        subscribe: centre_subjects(fleet),
    }];
    for (name, key) in agents {
        let publish = centre_subject(fleet, name);
        if users.iter().any(|user| user.publish == publish) {
            return Err(UsersError::SameName(ForeignText::new(name)));
        }
        users.push(BrokerUser {
            title: format!("the agent '{name}'"),
            key,
            publish,
            subscribe: agent_subject(fleet, name),
        });
    }
    check_keys(&users)?;
    let mut file = "# Users of the broker, for the configuration of nats-server: include \"FILE\"\n\
                    authorization {\n  users = [\n"
        .to_owned();
    for BrokerUser { key, publish, subscribe, .. } in &users {
        // Writing to a string cannot fail.
        let _ = writeln!(
            file,
            "    {{ nkey: {key}, permissions: {{ publish: [\"{publish}\"], subscribe: [\"{subscribe}\"] }} }}"
        );
    }
    file.push_str("  ]\n}\n");
    Ok(file)
}

struct BrokerUser<'a> {
    title: String,
    key: &'a str,
    publish: String,
    subscribe: String,
}

fn check_keys(users: &[BrokerUser<'_>]) -> Result<(), UsersError> {
    let mut owners = BTreeMap::new();
    for BrokerUser { title, key, .. } in users {
        let is_user = |pair: KeyPair| matches!(pair.key_pair_type(), KeyPairType::User);
        if !KeyPair::from_public_key(key).is_ok_and(is_user) {
            return Err(UsersError::Key { of: title.as_str().into(), key: ForeignText::new(key) });
        }
        if let Some(one) = owners.insert(*key, title) {
            return Err(UsersError::SameKey { one: one.as_str().into(), other: title.as_str().into() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_only_its_own_subjects() {
        let (centre, rome) = (KeyPair::new_user().public_key(), KeyPair::new_user().public_key());
        let file = users_file("my fleet", &centre, &[("rome.example", &rome)]).unwrap();
        let expected = format!(
            "authorization {{\n  users = [\n    \
             {{ nkey: {centre}, permissions: {{ publish: [\"linerate.my=20fleet.agent.*\"], \
             subscribe: [\"linerate.my=20fleet.centre.*\"] }} }}\n    \
             {{ nkey: {rome}, permissions: {{ publish: [\"linerate.my=20fleet.centre.rome=2Eexample\"], \
             subscribe: [\"linerate.my=20fleet.agent.rome=2Eexample\"] }} }}\n  ]\n}}\n"
        );
        assert!(file.ends_with(&expected), "{file}");
    }

    #[test]
    fn keys_that_would_be_refused_or_say_more_than_a_key_are_not_written() {
        let (centre, rome) = (KeyPair::new_user().public_key(), KeyPair::new_user().public_key());
        let account = KeyPair::new_account().public_key();
        let seed = KeyPair::new_user().seed().unwrap();
        let injected = format!("{rome}, permissions: {{}} }} #");
        for wrong in ["", "rome", &account, &seed, &injected, &rome.to_lowercase(), &format!(" {rome}")] {
            let error = users_file("f", &centre, &[("rome", wrong)]).unwrap_err();
            assert!(matches!(&error, UsersError::Key { of, .. } if *of == "the agent 'rome'"), "{error}");
        }
        let same = users_file("f", &centre, &[("rome", &rome), ("oslo", &rome)]).unwrap_err();
        assert_eq!(
            same.to_string(),
            "the agent 'rome' and the agent 'oslo' have the same key; give each a key of its own"
        );
        let other = KeyPair::new_user().public_key();
        let same = users_file("f", &centre, &[("rome", &rome), ("rome", &other)]).unwrap_err();
        assert_eq!(same, UsersError::SameName("rome".into()));
    }
}
