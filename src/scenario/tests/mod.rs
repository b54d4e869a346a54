mod checking;
mod ordering;
mod reading;
