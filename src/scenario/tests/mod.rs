mod checking;
mod meaning;
mod ordering;
mod reading;
mod recording;
