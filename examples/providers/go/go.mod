module example.test/provider

go 1.21
