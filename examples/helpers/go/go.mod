module example.net/choria-helper

go 1.21
