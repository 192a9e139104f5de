from ruddy.job import main

if __name__ == "__main__":
    main()
