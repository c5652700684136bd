module cachewarm.io/tests/load

go 1.26.0
