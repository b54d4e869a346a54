//! Values, sealed for the disk.

use chacha20poly1305::aead::{AeadInPlace as _, KeyInit as _};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::key::{ID_BYTES, StoreKey};

/// The form of a sealed row.
const FORM: u8 = 1;
/// Length of a nonce, in bytes.
const NONCE_BYTES: usize = 24;
/// What stands before the sealed value.
const HEAD_BYTES: usize = 1 + ID_BYTES + NONCE_BYTES;
/// What sealing adds behind it.
const TAG_BYTES: usize = 16;

/// Why a row could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It is not a row of this form.
    #[error("it is no sealed row")]
    Form,
    /// It was sealed with another key.
    #[error("it is sealed with another key")]
    OtherKey,
    /// It is not what was sealed under this name and version.
    #[error("it was not sealed under this name and version")]
    Foreign,
}

/// What a row is bound to: another name or version does not open it.
fn bound_to(name: &str, version: u64) -> Vec<u8> {
    let mut bound = b"qm-vault/1\0".to_vec();
    bound.extend_from_slice(name.as_bytes());
    bound.push(0);
    bound.extend_from_slice(&version.to_be_bytes());
    bound
}

/// Seals a value under a name and version.
///
/// # Errors
/// [`SealError::Form`] when the value is longer than the cipher takes, which no value here is.
pub(super) fn seal(key: &StoreKey, name: &str, version: u64, value: &[u8]) -> Result<Vec<u8>, SealError> {
    let nonce: [u8; NONCE_BYTES] = rand::random();
    // Sealed where it lies, in a buffer that does not have to grow, so that no plain copy is left behind.
    let mut row = Zeroizing::new(Vec::with_capacity(HEAD_BYTES + value.len() + TAG_BYTES));
    row.push(FORM);
    row.extend_from_slice(&key.id());
    row.extend_from_slice(&nonce);
    row.extend_from_slice(value);
    let cipher = XChaCha20Poly1305::new(key.bytes().into());
    let body = row.get_mut(HEAD_BYTES..).ok_or(SealError::Form)?;
    let tag = cipher
        .encrypt_in_place_detached(XNonce::from_slice(&nonce), &bound_to(name, version), body)
        .map_err(|_| SealError::Form)?;
    row.extend_from_slice(&tag);
    Ok(std::mem::take(&mut *row))
}

/// Opens what [`seal`] made for the same name and version.
///
/// # Errors
/// [`SealError`].
pub(super) fn open(
    key: &StoreKey,
    name: &str,
    version: u64,
    row: &[u8],
) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let (head, body) = row.split_at_checked(HEAD_BYTES).ok_or(SealError::Form)?;
    let (id, nonce) =
        head.strip_prefix(&[FORM]).and_then(|head| head.split_at_checked(ID_BYTES)).ok_or(SealError::Form)?;
    if id != key.id() {
        return Err(SealError::OtherKey);
    }
    let (body, tag) = body
        .len()
        .checked_sub(TAG_BYTES)
        .and_then(|length| body.split_at_checked(length))
        .ok_or(SealError::Form)?;
    let mut value = Zeroizing::new(body.to_vec());
    XChaCha20Poly1305::new(key.bytes().into())
        .decrypt_in_place_detached(
            XNonce::from_slice(nonce),
            &bound_to(name, version),
            &mut value,
            tag.into(),
        )
        .map_err(|_| SealError::Foreign)?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_opens_under_its_own_name_and_version_alone() {
        let key = StoreKey::new([1; 32]);
        let row = seal(&key, "own/a/b", 3, b"value").unwrap();
        assert_eq!(open(&key, "own/a/b", 3, &row).unwrap().as_slice(), b"value");
        assert_eq!(open(&key, "own/a/c", 3, &row), Err(SealError::Foreign));
        assert_eq!(open(&key, "own/a/b", 2, &row), Err(SealError::Foreign));
        assert_eq!(open(&StoreKey::new([2; 32]), "own/a/b", 3, &row), Err(SealError::OtherKey));
        assert!(!row.windows(5).any(|part| part == b"value"));
        assert_ne!(row, seal(&key, "own/a/b", 3, b"value").unwrap(), "each sealing has a nonce of its own");
    }

    #[test]
    fn a_changed_row_does_not_open() {
        let key = StoreKey::new([1; 32]);
        let row = seal(&key, "n", 1, b"").unwrap();
        for at in 0..row.len() {
            let mut changed = row.clone();
            changed[at] ^= 1;
            assert!(open(&key, "n", 1, &changed).is_err(), "{at}");
            assert!(open(&key, "n", 1, &row[..at]).is_err(), "{at}");
        }
    }
}
