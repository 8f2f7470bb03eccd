//! Settings that ask for features this version does not have yet, and whose silent acceptance would mislead:
//! somebody would believe that data is saved, guarded or bounded. They are refused at start and by CONFIG SET.
//! Take a line out with the feature's arrival.
use super::{P, Settings};

type Asks = fn(&Settings) -> bool;

const ABSENT: &[(P, Asks)] = &[
    (P::REQUIREPASS, |s| !s.text(P::REQUIREPASS).is_empty()),
    (P::ACLFILE, |s| !s.text(P::ACLFILE).is_empty()),
    (P::TLS_PORT, |s| s.int(P::TLS_PORT) != 0),
    (P::MAXMEMORY, |s| s.memory(P::MAXMEMORY) != 0),
    (P::REPLICAOF, |s| s.primary().is_some()),
    (P::MIN_REPLICAS_TO_WRITE, |s| s.int(P::MIN_REPLICAS_TO_WRITE) != 0),
    (P::CLUSTER_ENABLED, |s| s.bool(P::CLUSTER_ENABLED)),
];

/// Why such a setting is refused.
pub(super) const REASON: &str = "not available in this version of Perigee";

/// The first parameter of these settings that asks for a feature which is not there.
pub fn absent_feature(settings: &Settings) -> Option<P> {
    ABSENT.iter().find(|(_, asks)| asks(settings)).map(|(id, _)| *id)
}

/// Why a server cannot start with these settings, if it cannot.
pub fn refused_yet(settings: &Settings) -> Option<String> {
    let id = absent_feature(settings)?;
    Some(format!("'{} {}' is {REASON}", id.row().name, settings.get_text(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_ask_for_nothing_absent() {
        assert_eq!(refused_yet(&Settings::default()), None);
    }

    #[test]
    fn what_is_absent_is_refused() {
        let asks: &[(&str, &[&[u8]])] = &[
            ("requirepass", &[b"x"]),
            ("aclfile", &[b"x"]),
            ("tls-port", &[b"1"]),
            ("maxmemory", &[b"1mb"]),
            ("replicaof", &[b"h", b"1"]),
            ("min-replicas-to-write", &[b"1"]),
            ("cluster-enabled", &[b"yes"]),
        ];
        assert_eq!(asks.len(), ABSENT.len());
        for (name, words) in asks {
            let mut settings = Settings::default();
            settings.set(name.as_bytes(), words).unwrap();
            assert_eq!(absent_feature(&settings).unwrap().row().name, *name);
            assert!(refused_yet(&settings).unwrap().contains(name));
        }
        let mut settings = Settings::default();
        settings.set(b"maxmemory-policy", &[b"allkeys-lru"]).unwrap();
        assert_eq!(refused_yet(&settings), None);
    }
}
