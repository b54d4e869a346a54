//! PEM blocks that hold secrets, and the traditional OpenSSL encryption of a private key (choria.md 9.2).
//!
//! Certificates are read elsewhere with a library; private keys are read here so that every copy is wiped.

use std::fmt;

use aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt as _, BlockModeEncrypt as _, KeyIvInit as _};
use md5::{Digest as _, Md5};
use zeroize::Zeroizing;

use super::token::shown;

/// The longest text that is searched for a block, in bytes.
pub const MAX_PEM_TEXT: usize = 256 * 1024;

/// The label every encrypted key carries, whatever its algorithm.
const LABEL: &str = "RSA PRIVATE KEY";

/// Columns of a base64 line.
const COLUMNS: usize = 64;

/// Why a PEM text could not be read, encrypted or decrypted. No message carries its content.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PemError {
    /// The text is too long.
    #[error("PEM text of {bytes} bytes is longer than {MAX_PEM_TEXT}")]
    TooLong {
        /// Length of the text, bytes.
        bytes: usize,
    },
    /// There is no whole block in the text.
    #[error("found no complete PEM block")]
    NoBlock,
    /// The block's body is not base64.
    #[error("PEM block `{label}` is not base64")]
    Base64 {
        /// Label of the block, bounded and printable.
        label: String,
    },
    /// A key was to be encrypted and the block is something else.
    #[error("PEM block `{label}` is not a private key")]
    NotAKey {
        /// Label of the block, bounded and printable.
        label: String,
    },
    /// A key was to be encrypted and is encrypted already.
    #[error("private key is already encrypted")]
    AlreadyEncrypted,
    /// A key was to be decrypted and is not encrypted.
    #[error("key is not encrypted")]
    NotEncrypted,
    /// The encryption is not AES-256-CBC with a 16-byte IV.
    #[error("key is encrypted in a way that is not AES-256-CBC with a 16-byte IV")]
    UnknownCipher,
    /// Wrong secret or damaged content.
    #[error("failed to decrypt: wrong secret or damaged content")]
    Decrypt,
}

/// One PEM block; its content is wiped when dropped and never shown.
pub struct Block {
    label: String,
    headers: Vec<(String, String)>,
    der: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("label", &self.label).finish_non_exhaustive()
    }
}

impl Block {
    /// The label between `BEGIN` and the dashes.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The decoded content.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The value of one header, as `Proc-Type`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Reads the first block of a text; what stands before and after it is ignored.
pub fn first_block(text: &str) -> Result<Block, PemError> {
    if text.len() > MAX_PEM_TEXT {
        return Err(PemError::TooLong { bytes: text.len() });
    }
    let mut lines = text.lines().map(str::trim);
    let label = lines
        .by_ref()
        .find_map(|line| line.strip_prefix("-----BEGIN ")?.strip_suffix("-----"))
        .ok_or(PemError::NoBlock)?;
    let end = format!("-----END {label}-----");
    let mut headers = Vec::new();
    let mut body = Zeroizing::new(String::with_capacity(text.len()));
    let mut ended = false;
    for line in lines {
        if line == end {
            ended = true;
            break;
        }
        match line.split_once(':') {
            Some((key, value)) if body.is_empty() => {
                headers.push((key.trim().to_owned(), value.trim().to_owned()));
            }
            _ => body.push_str(line),
        }
    }
    if !ended {
        return Err(PemError::NoBlock);
    }
    let label = shown(label);
    match STANDARD.decode(body.as_bytes()) {
        Ok(der) => Ok(Block { label, headers, der: Zeroizing::new(der) }),
        Err(_) => Err(PemError::Base64 { label }),
    }
}

/// Writes one block with `headers` in the given order, 64 columns, a newline at the end.
pub fn write_block(label: &str, headers: &[(&str, &str)], der: &[u8]) -> Zeroizing<String> {
    let body = Zeroizing::new(STANDARD.encode(der));
    let mut text = Zeroizing::new(String::with_capacity(body.len() + body.len() / COLUMNS + 256));
    text.push_str("-----BEGIN ");
    text.push_str(label);
    text.push_str("-----\n");
    for (key, value) in headers {
        text.push_str(key);
        text.push_str(": ");
        text.push_str(value);
        text.push('\n');
    }
    if !headers.is_empty() {
        text.push('\n');
    }
    let mut rest = body.as_str();
    while let Some((line, tail)) = rest.split_at_checked(COLUMNS) {
        text.push_str(line);
        text.push('\n');
        rest = tail;
    }
    if !rest.is_empty() {
        text.push_str(rest);
        text.push('\n');
    }
    text.push_str("-----END ");
    text.push_str(label);
    text.push_str("-----\n");
    text
}

/// The AES key of a password and salt: EVP_BytesToKey with MD5 and one iteration; the salt is the first half of the IV.
pub fn derive_key(secret: &[u8; 32], iv: &[u8; 16]) -> Zeroizing<[u8; 32]> {
    let (salt, _) = iv.split_at(8);
    let first = Md5::new().chain_update(secret).chain_update(salt).finalize();
    let second = Md5::new().chain_update(first).chain_update(secret).chain_update(salt).finalize();
    let mut key = Zeroizing::new([0_u8; 32]);
    for (to, from) in key.iter_mut().zip(first.iter().chain(second.iter())) {
        *to = *from;
    }
    key
}

/// Encrypts the first block of `pem_text` for the holder of `shared`: the text to send as `key` in configure.
///
/// # Errors
/// [`PemError`] when there is no block, it is no private key or it is encrypted already.
pub fn encrypt_private_key(pem_text: &str, shared: &[u8; 32], iv: [u8; 16]) -> Result<String, PemError> {
    let block = first_block(pem_text)?;
    if block.header("Proc-Type").is_some() || block.label() == "ENCRYPTED PRIVATE KEY" {
        return Err(PemError::AlreadyEncrypted);
    }
    if !block.label().ends_with("PRIVATE KEY") {
        return Err(PemError::NotAKey { label: block.label().to_owned() });
    }
    Ok(encrypt_der(block.der(), shared, iv))
}

/// Encrypts bytes as they are; see [`encrypt_private_key`].
pub fn encrypt_der(der: &[u8], shared: &[u8; 32], iv: [u8; 16]) -> String {
    let key = derive_key(shared, &iv);
    let sealed = cbc::Encryptor::<Aes256>::new((&*key).into(), (&iv).into()).encrypt_padded_vec::<Pkcs7>(der);
    let dek = format!("AES-256-CBC,{}", hex::encode(iv));
    write_block(LABEL, &[("Proc-Type", "4,ENCRYPTED"), ("DEK-Info", &dek)], &sealed).to_string()
}

/// Decrypts what [`encrypt_private_key`] made: the clear `RSA PRIVATE KEY` block a server writes to its disk.
pub fn decrypt_private_key(pem_text: &str, shared: &[u8; 32]) -> Result<Zeroizing<String>, PemError> {
    let der = decrypt_der(pem_text, shared)?;
    Ok(write_block(LABEL, &[], &der))
}

/// Decrypts to the bytes inside; see [`decrypt_private_key`].
pub fn decrypt_der(pem_text: &str, shared: &[u8; 32]) -> Result<Zeroizing<Vec<u8>>, PemError> {
    let block = first_block(pem_text)?;
    if block.header("Proc-Type") != Some("4,ENCRYPTED") {
        return Err(PemError::NotEncrypted);
    }
    let iv_hex = block.header("DEK-Info").and_then(|dek| dek.strip_prefix("AES-256-CBC,"));
    let mut iv = [0_u8; 16];
    hex::decode_to_slice(iv_hex.ok_or(PemError::UnknownCipher)?, &mut iv)
        .map_err(|_| PemError::UnknownCipher)?;
    let key = derive_key(shared, &iv);
    cbc::Decryptor::<Aes256>::new((&*key).into(), (&iv).into())
        .decrypt_padded_vec::<Pkcs7>(block.der())
        .map(Zeroizing::new)
        .map_err(|_| PemError::Decrypt)
}
