//! Hostile certificate requests and hostile names: refused before the helper hears of them, for the right reason.

use super::hostile_field::{Fate, Field, Kind, Row};
use super::support::eventually;
use Fate::Refused;

const DENIED: &str = r"ops.privileged.choria matches denied certificate pattern \.privileged.choria$";

const ROWS: &[Row] = &[
    ("non_pem_csr", Refused("csr", "is not one PEM block")),
    ("csr_garbage", Refused("csr", "cannot be decoded")),
    ("csr_wrong_name", Refused("csr", "common name somebody.else.example.net does not match identity")),
    ("csr_ca", Refused("csr", "asks for a certificate authority (basic constraints CA:TRUE)")),
    ("csr_cert_sign", Refused("csr", "asks for a certificate authority (key usage keyCertSign)")),
    ("csr_bad_proof", Refused("csr", "is not signed with the key it is for")),
    ("csr_unknown_critical", Refused("csr", "unknown critical extension 1.3.6.1.4.1.99999.1")),
    ("csr_privileged_name", Refused("csr", DENIED)),
    ("csr_privileged_upper", Refused("csr", "OPS.PRIVILEGED.CHORIA matches denied certificate pattern")),
    ("csr_privileged_dot", Refused("csr", "ops.privileged.choria. matches denied certificate pattern")),
    ("csr_privileged_nul", Refused("csr", "matches denied certificate pattern")),
    ("csr_privileged_email", Refused("csr", "(e-mail address)")),
    ("csr_privileged_uri", Refused("csr", "(URI)")),
    ("csr_privileged_directory", Refused("csr", "(directory name)")),
    ("csr_privileged_other", Refused("csr", "(other name)")),
    ("wrong_types/gencsr", Refused("gencsr", "unusable answer: `csr` should be")),
    ("null_outputs/gencsr", Refused("gencsr", "unusable answer: `csr` should be")),
    ("missing_outputs/gencsr", Refused("gencsr", "unusable answer: `csr` should be")),
    ("jwt_alg_none", Refused("token", "signed with `none`")),
];

/// Names of servers that nobody may have a certificate for.
const NAMES: &[&str] =
    &["x.choria", "x.mcollective", "x.privileged.choria", "X.PRIVILEGED.MCOLLECTIVE", "X.Choria"];

/// Names that no server can have: whoever announces them is not taken at all.
const IMPOSSIBLE: &[&str] =
    &["x.privileged.choria.", "x.choria\0.example.net", "x.choria\n", "x choria", "*.example.net", "", ".x"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_hostile_request_or_name_reaches_the_helper() {
    let Some(mut field) = Field::start(Kind::PlainPki, ROWS, NAMES, |_| {}).await else { return };
    field.daemon.listens().await;
    eventually("it is ready", || field.daemon.get("/readyz").0 == 200).await;
    for name in IMPOSSIBLE {
        field.announce(name).await;
    }
    let rejected = || field.daemon.metric("quartermaster_rejected_events_total", "site")["emulated"];
    eventually("every impossible name is counted", || rejected() == IMPOSSIBLE.len() as u64).await;
    field.check(ROWS, Refused("csr", "matches denied certificate pattern")).await;
}
