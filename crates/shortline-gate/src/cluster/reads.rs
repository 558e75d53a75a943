//! Whether a transaction surely only reads, by what the rules say of it, by what it says itself, and by its
//! session's default: only then it may go to a replica.

use crate::classify::Reads;
use crate::postgres::access::{Access, Opens};

impl Reads {
    /// Whether a transaction that begins like this only reads.
    pub(crate) fn allows(self, opens: Opens, is_session_read_only: bool) -> bool {
        match (self, opens.access) {
            (Self::Primary, _) | (_, Access::Write) => false,
            (Self::Transaction, _) => true,
            (_, Access::Read) => opens.is_single,
            (_, Access::Unsure) => false,
            (Self::Statement, Access::Unsaid) => {
                opens.is_single && (is_session_read_only || !opens.is_explicit)
            }
            (Self::Unsaid, Access::Unsaid) => opens.is_single && is_session_read_only,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [Reads; 4] = [
        Reads::Unsaid,
        Reads::Primary,
        Reads::Statement,
        Reads::Transaction,
    ];
    const SAID: [Access; 4] = [Access::Unsaid, Access::Unsure, Access::Read, Access::Write];

    /// All cases: nothing that may write goes to a replica unless a rule vouches for it.
    #[test]
    fn only_what_surely_reads_goes_to_a_replica() {
        let mut reading = 0;
        for rule in RULES {
            for access in SAID {
                for flags in 0..8 {
                    let opens = Opens {
                        access,
                        is_explicit: flags & 1 != 0,
                        is_single: flags & 2 != 0,
                    };
                    let session = flags & 4 != 0;
                    if !rule.allows(opens, session) {
                        continue;
                    }
                    reading += 1;
                    assert!(access != Access::Write && rule != Reads::Primary);
                    let is_vouched_for = rule == Reads::Transaction
                        || rule == Reads::Statement && !opens.is_explicit;
                    let says_so = access == Access::Read || access == Access::Unsaid && session;
                    assert!(is_vouched_for || says_so, "{rule:?} {opens:?} {session}");
                    assert!(rule == Reads::Transaction || opens.is_single);
                }
            }
        }
        assert!(reading > 0);
    }
}
