"""The cases of faults_test.py, by what is disturbed."""
