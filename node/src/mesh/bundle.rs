//! Templates packed the same way each time: one folder, one digest.

use quartermaster_proto::mesh::plan::Digest;
use tar::{Builder, EntryType, Header};

use super::error::MeshError;
use crate::archive::{self, MAX_FETCHED, Templates};

/// A plain tar archive of these templates, in the order of their names, without owners and times.
///
/// # Errors
/// A client would refuse it.
pub fn bundle(templates: &Templates) -> Result<Vec<u8>, MeshError> {
    let refused = |why: String| MeshError::Refused(vec![why]);
    let mut builder = Builder::new(Vec::new());
    for (name, content) in templates {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(u64::try_from(content.len()).unwrap_or(u64::MAX));
        header.set_mode(0o644);
        header.set_mtime(0);
        builder
            .append_data(&mut header, name, content.as_ref())
            .map_err(|error| refused(format!("{name} cannot be packed: {error}")))?;
    }
    let bytes =
        builder.into_inner().map_err(|error| refused(format!("the archive cannot be made: {error}")))?;
    if bytes.len() > MAX_FETCHED {
        return Err(refused(format!(
            "the archive has {} bytes, over the limit of {MAX_FETCHED}",
            bytes.len()
        )));
    }
    archive::read(&bytes).map_err(|error| refused(error.to_string()))?;
    Ok(bytes)
}

/// The name under which an archive is published: another content, another name, so that a plan that names the old one is not touched.
pub fn object_name(base: &str, digest: &Digest) -> String {
    format!("{base}-{}.tar", digest.hex().get(..12).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn templates(names: &[&str]) -> Templates {
        names.iter().map(|name| ((*name).to_owned(), Arc::from(name.as_bytes()))).collect()
    }

    #[test]
    fn the_same_templates_make_the_same_archive() {
        let long = format!("{}/{}", "d".repeat(150), "f".repeat(120));
        let given = templates(&["b/c", "a", &long]);
        let bytes = bundle(&given).unwrap();
        assert_eq!(bytes, bundle(&given).unwrap());
        assert_eq!(archive::read(&bytes).unwrap(), given);
        let digest = Digest::of(&bytes);
        assert_eq!(object_name("forge", &digest).len(), "forge-.tar".len() + 12);
    }

    #[test]
    fn what_a_client_would_refuse_is_refused() {
        for name in ["../a", "/a"] {
            assert!(matches!(bundle(&templates(&[name])), Err(MeshError::Refused(_))), "{name}");
        }
    }
}
